// All attacks, by kind.
import type { Attack } from '../round.ts'
import { crowdAttacks } from './floods.ts'
import { framingAttacks } from './framing.ts'
import { headerAttacks } from './headers.ts'
import { bulkAttacks } from './large-bodies.ts'
import { messageAttacks } from './messages.ts'
import { pathAttacks } from './paths.ts'
import { pipeliningAttacks } from './pipelining.ts'
import { questionAttacks } from './server-requests.ts'
import { sessionAttacks } from './sessions.ts'
import { slowAttacks } from './slow.ts'
import { victimAttacks } from './victims.ts'

export const ATTACKS: readonly Attack[] = [
  ...victimAttacks,
  ...messageAttacks,
  ...headerAttacks,
  ...pathAttacks,
  ...framingAttacks,
  ...pipeliningAttacks,
  ...slowAttacks,
  ...sessionAttacks,
  ...questionAttacks,
  ...crowdAttacks,
  ...bulkAttacks,
]
