// Formats the differences of two surfaces as text, with control characters escaped.
import { printable } from '../../client/text.ts'
import { show, truncate } from './compare-schemas.ts'
import { type Change, IMPACTS, type Impact } from './compare-surfaces.ts'

const TITLES: Readonly<Record<Impact, readonly [title: string, counted: string]>> = {
  breaking: ['Breaks clients', 'breaking'],
  'may-break': ['May break clients: effect unknown', 'may break'],
  opens: ['Allows more: fewer callers are refused or asked', 'allow more'],
  read: ['Read by models and people', 'read by models'],
  harmless: ['Harmless', 'harmless'],
}

const MAX_ADDRESSES = 3
const CONTEXT = 40
const MAX_VALUE = 4_000
const MAX_LINE = 100

/** Also escapes spaces that look like the ordinary space. */
const visible = (text: string): string =>
  printable(text).replace(/[^\S ]/gu, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)

export function changeLine({ at, of, what }: Change): string {
  const more = at.length > MAX_ADDRESSES ? ` and ${at.length - MAX_ADDRESSES} more` : ''
  const where = at.length === 0 ? [] : [`${at.slice(0, MAX_ADDRESSES).join(', ')}${more}`]
  const place = [...where, ...(of ? [`${of.kind} ${show(of.name)}`] : [])].join('  ')
  return visible(place === '' ? what : `${place}: ${what}`)
}

function sharedEnds(was: string, now: string): [start: number, end: number] {
  const min = Math.min(was.length, now.length)
  let start = 0
  while (start < min && was[start] === now[start]) start++
  let end = 0
  while (end < min - start && was.at(-1 - end) === now.at(-1 - end)) end++
  return [start, end]
}

function excerpts(before: unknown, after: unknown): string[] {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
  const [was, now] = [textOf(before), textOf(after)]
  const [start, end] = sharedEnds(was, now)
  const [skipped, left] = [Math.max(0, start - CONTEXT), Math.max(0, end - CONTEXT)]
  const side = (value: unknown, text: string) => {
    if (value === undefined) return 'none'
    const excerpt = text.slice(skipped, text.length - left)
    const front = skipped === 0 ? '' : `(${skipped} characters that are the same)…`
    const quoted = typeof value === 'string' ? JSON.stringify(excerpt) : excerpt
    return `${front}${visible(truncate(quoted, MAX_VALUE))}${left === 0 ? '' : `…(${left} that are the same)`}`
  }
  return [`was  ${side(before, was)}`, `now  ${side(after, now)}`]
}

function addedLines(value: unknown): string[] {
  const line = JSON.stringify(value) ?? 'none'
  const lines = truncate(line.length > MAX_LINE ? JSON.stringify(value, undefined, 2) : line, 2 * MAX_VALUE).split('\n')
  return lines.map((text, index) => `${index === 0 ? 'now  ' : '     '}${visible(text)}`)
}

export function valueLines(change: Change): string[] {
  const { before, after } = change
  if ('before' in change) return excerpts(before, after)
  return 'after' in change ? addedLines(after) : []
}

const changeLines = (change: Change) => [`  ${changeLine(change)}`, ...valueLines(change).map(line => `      ${line}`)]

export const countImpacts = (changes: readonly Change[]): Readonly<Record<Impact, number>> =>
  Object.fromEntries(
    IMPACTS.map(impact => [impact, changes.filter(change => change.impact === impact).length]),
  ) as Record<Impact, number>

export function impactsText(changes: readonly Change[]): string {
  const counts = countImpacts(changes)
  return IMPACTS.flatMap(impact => (counts[impact] > 0 ? `${counts[impact]} ${TITLES[impact][1]}` : [])).join(', ')
}

export function changesText(changes: readonly Change[]): string {
  return IMPACTS.flatMap(impact => {
    const own = changes.filter(change => change.impact === impact)
    return own.length === 0 ? [] : [[TITLES[impact][0], ...own.flatMap(changeLines)].join('\n')]
  }).join('\n\n')
}
