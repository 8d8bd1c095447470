// What protection costs a tools/call: a bearer token that was seen before, and a policy of fifty rules.
import { ours } from '../contestants.ts'
import { BEARER, POLICY, protectedBy } from '../protection.ts'
import { callEcho } from '../requests.ts'
import { difference, type Row } from '../row.ts'

export const row: Row = {
  name: 'tools/call, protected',
  contestants: [
    ours(1, callEcho),
    protectedBy('ours, bearer token', BEARER),
    protectedBy('ours, bearer token and 50 rules', { ...BEARER, ...POLICY }),
  ],
  targets: [
    difference('ours, bearer token', 'ours, 1 tool', 8),
    difference('ours, bearer token and 50 rules', 'ours, bearer token', 2),
  ],
}
