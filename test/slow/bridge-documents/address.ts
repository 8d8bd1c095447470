// The public address that the network of these tests has. Nothing of it leaves this machine.
export const ADDRESS = '11.22.33.44'
