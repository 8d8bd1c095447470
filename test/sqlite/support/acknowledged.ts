// What the stores acknowledged before a power cut (store-program.ts), held against what they have after it.
import { BOUNDS_OF_SESSIONS } from '../../plugins/store-sqlite/support/records.ts'
import type { OpenedFile } from '../../plugins/store-sqlite/support/sqlite-files.ts'

export interface Acknowledged {
  readonly kind:
    | 'event'
    | 'session'
    | 'watched'
    /** Asked for, and not acknowledged yet. */
    | 'session ends'
    | 'session ended'
    | 'grant'
    | 'grant is taken'
    | 'grant was taken'
  readonly key: string
  readonly seq?: number
  readonly text?: string
  /** Where the log was. */
  readonly at: number
}

export interface Losses {
  checked: number
  /** What was acknowledged and is not there, or what was ended and is. */
  lost: string[]
}

async function checkStream({ events }: OpenedFile, key: string, told: readonly Acknowledged[], losses: Losses) {
  const [session = '', stream = ''] = key.split('/')
  const found = (await events.after(session, stream, 0)) ?? []
  const inOrder = found.every(({ seq }, index) => seq === index + 1)
  if (!inOrder) losses.lost.push(`${key}: numbered ${found.map(({ seq }) => seq)}`)
  for (const { seq = 0, text } of told) {
    losses.checked++
    if (found[seq - 1]?.message !== text) losses.lost.push(`${key}: event ${seq}`)
  }
}

async function checkSession({ sessions, node }: OpenedFile, key: string, kinds: ReadonlySet<string>, losses: Losses) {
  losses.checked++
  const visit = { version: 0, requests: [], from: [] }
  const entered = await sessions.enter(key, visit, BOUNDS_OF_SESSIONS)
  const watched = entered.kind === 'entered' ? entered.record?.state.watched : undefined
  if (kinds.has('session ended')) {
    if (watched) losses.lost.push(`${key} was ended, and is there at ${node}`)
  } else if (!watched) {
    if (!kinds.has('session ends')) losses.lost.push(`${key} is gone`)
  } else if (kinds.has('watched') && watched.length !== 1) losses.lost.push(`${key} watches ${watched.length}`)
}

async function checkGrant({ grants }: OpenedFile, key: string, kinds: ReadonlySet<string>, losses: Losses) {
  losses.checked++
  const found = await grants.get(key)
  if (kinds.has('grant was taken')) {
    if (found !== undefined) losses.lost.push(`${key} was taken, and is there again`)
  } else if (found === undefined && !kinds.has('grant is taken')) losses.lost.push(`${key} is gone`)
}

/** `told`: what was acknowledged before the cut. */
export async function findLosses(opened: OpenedFile, told: readonly Acknowledged[]): Promise<Losses> {
  const losses: Losses = { checked: 0, lost: [] }
  const byKey = new Map<string, Acknowledged[]>()
  for (const one of told) byKey.set(one.key, [...(byKey.get(one.key) ?? []), one])
  for (const [key, all] of byKey) {
    const kinds = new Set<string>(all.map(({ kind }) => kind))
    if (kinds.has('event')) await checkStream(opened, key, all, losses)
    else if (key.startsWith('granted:')) await checkGrant(opened, key, kinds, losses)
    else await checkSession(opened, key, kinds, losses)
  }
  return losses
}
