// The public address in the network namespace of these tests. No traffic leaves this machine.
export const ADDRESS = '11.22.33.44'
