// What differs, as text for a person. Names and descriptions are of whoever wrote the tools: none of it steers a terminal.
import { printable } from '../../client/text.ts'
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
  return visible(place === '' ? change.what : `${place}: ${change.what}`)
}

/** Characters around what differs. */
const AROUND = 40
/** Characters of one text that are shown. */
const MOST = 4_000

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** Spaces that are not the one of the space bar look like it. */
const visible = (text: string): string =>
  printable(text).replace(/[^\S ]/gu, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A text, in quotes, whole or cut; how much is not shown is said. */
const quoted = (text: string): string => visible(cut(JSON.stringify(text), MOST))

function isSameAt(one: string, other: string, fromEnd: number): boolean {
  return one[one.length - fromEnd] === other[other.length - fromEnd]
}

/** Both from where they begin to differ to where they end to, with a little around it. */
function excerpts(before: unknown, after: unknown): [string, string] {
  const [was, now] = [textOf(before), textOf(after)]
  const least = Math.min(was.length, now.length)
  let same = 0
  while (same < least && was[same] === now[same]) same++
  let tail = 0
  while (tail < least - same && isSameAt(was, now, tail + 1)) tail++
  const [skipped, left] = [Math.max(0, same - AROUND), Math.max(0, tail - AROUND)]
  const side = (value: unknown, text: string) => {
    if (value === undefined) return 'none'
    const excerpt = text.slice(skipped, text.length - left)
    const front = skipped === 0 ? '' : `(${skipped} characters that are the same)…`
    return `${front}${quoted(excerpt)}${left === 0 ? '' : `…(${left} that are the same)`}`
  }
  return [side(before, was), side(after, now)]
}

function linesOf(change: Change): string[] {
  const { before, after, texts = [] } = change
  const hasSides = 'before' in change || 'after' in change
  const [was, now] = hasSides ? excerpts(before, after) : []
  return [
    `  ${changeLine(change)}`,
    ...(hasSides ? [`      was  ${was}`, `      now  ${now}`] : []),
    ...texts.map(({ at, text }) => `      ${visible(at)}${text === undefined ? '' : `  ${quoted(text)}`}`),
  ]
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
