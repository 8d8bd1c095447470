// What differs, as text for a person. Names and descriptions are of whoever wrote the tools: none of it steers a terminal.
import { printable } from '../../client/printable.ts'
import { IMPACTS, type Impact } from './compare-items.ts'
import type { Change } from './compare-surfaces.ts'
import { cut, shown } from './verdict.ts'

const TITLES: Readonly<Record<Impact, string>> = {
  breaking: 'Breaks clients',
  'may-break': 'May break clients: this cannot be judged',
  opens: 'Lets more through: fewer callers are refused or asked',
  read: 'Models and people read it',
  harmless: 'Harmless',
}

const COUNTED: Readonly<Record<Impact, string>> = {
  breaking: 'breaking',
  'may-break': 'may break',
  opens: 'let more through',
  read: 'read by models',
  harmless: 'harmless',
}

/** How many addresses a line names. */
const MOST_ADDRESSES = 3

function placeOf({ at, of }: Change): string {
  const more = at.length > MOST_ADDRESSES ? ` and ${at.length - MOST_ADDRESSES} more` : ''
  const where = at.length === 0 ? [] : [`${at.slice(0, MOST_ADDRESSES).join(', ')}${more}`]
  return [...where, ...(of ? [`${of.kind} ${shown(of.name)}`] : [])].join('  ')
}

/** One line: where it is, and what. */
export function changeLine(change: Change): string {
  const place = placeOf(change)
  return printable(place === '' ? change.what : `${place}: ${change.what}`)
}

/** Characters in front of the first that differs. */
const BEFORE = 40

/** Both from where they begin to differ. */
function excerpts(before: unknown, after: unknown): [string, string] {
  if (typeof before !== 'string' || typeof after !== 'string') return [shown(before), shown(after)]
  let same = 0
  while (same < before.length && before[same] === after[same]) same++
  const from = Math.max(0, same - BEFORE)
  const text = (whole: string) => cut(`${from > 0 ? '…' : ''}${JSON.stringify(whole.slice(from))}`)
  return [text(before), text(after)]
}

function linesOf(change: Change): string[] {
  if (!('before' in change) && !('after' in change)) return [`  ${changeLine(change)}`]
  const [was, now] = excerpts(change.before, change.after)
  return [`  ${changeLine(change)}`, printable(`      was  ${was}`), printable(`      now  ${now}`)]
}

export const countsOf = (changes: readonly Change[]): Readonly<Record<Impact, number>> =>
  Object.fromEntries(
    IMPACTS.map(impact => [impact, changes.filter(change => change.impact === impact).length]),
  ) as Record<Impact, number>

/** Such as `2 breaking, 1 harmless`. */
export function countsText(changes: readonly Change[]): string {
  const counts = countsOf(changes)
  return IMPACTS.filter(impact => counts[impact] > 0)
    .map(impact => `${counts[impact]} ${COUNTED[impact]}`)
    .join(', ')
}

/** All of it, the worst first. */
export function changesText(changes: readonly Change[]): string {
  return IMPACTS.flatMap(impact => {
    const own = changes.filter(change => change.impact === impact)
    return own.length === 0 ? [] : [[TITLES[impact], ...own.flatMap(linesOf)].join('\n')]
  }).join('\n\n')
}
