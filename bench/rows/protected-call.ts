// Measures the cost of a cached bearer token and of a tool policy with 50 rules.
import { mcpHost } from '../contestants.ts'
import { BEARER, POLICY, protectedHost } from '../protected-host.ts'
import { callEcho } from '../requests.ts'
import { difference, type Row } from '../row.ts'

export const row: Row = {
  name: 'tools/call, protected',
  contestants: [
    mcpHost(1, callEcho),
    protectedHost('ours, bearer token', BEARER),
    protectedHost('ours, bearer token and 50 rules', { ...BEARER, ...POLICY }),
  ],
  targets: [
    difference('ours, bearer token', 'ours, 1 tool', 8),
    difference('ours, bearer token and 50 rules', 'ours, bearer token', 2),
  ],
}
