// Safe display of text that clients and upstream servers control: characters that are invisible or reorder text become visible.

const MAX_LENGTH = 4_000
/** Control, format (bidirectional, zero-width), private-use and unassigned characters, line separators, and lone surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u
const EACH_INVISIBLE = new RegExp(INVISIBLE.source, 'gu')
/** More than three combining marks overlap other lines. */
const STACKED_MARKS = /(\p{M}{3})\p{M}+/gu

const codePoint = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

const cut = (text: string, most: number) => {
  const limited = text.length > most ? `${text.slice(0, most)}…` : text
  return limited.replace(STACKED_MARKS, '$1')
}

export interface Piece {
  readonly text: string
  readonly isEscaped: boolean
}

/** Splits text into plain pieces and escaped characters. With `lines`, line feeds and tabs stay. */
export function pieces(text: string, { most = MAX_LENGTH, lines = false } = {}): Piece[] {
  const found: Piece[] = []
  let plain = ''
  for (const character of cut(text, most)) {
    const isKept = lines && (character === '\n' || character === '\t')
    if (isKept || !INVISIBLE.test(character)) {
      plain += character
      continue
    }
    if (plain !== '') found.push({ text: plain, isEscaped: false })
    plain = ''
    found.push({ text: codePoint(character), isEscaped: true })
  }
  if (plain !== '') found.push({ text: plain, isEscaped: false })
  return found
}

/** The same as one string, for attributes. */
export const visibleText = (text: string, most = 200): string =>
  cut(text, most).replace(EACH_INVISIBLE, character => `[${codePoint(character)}]`)

const number = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

export const count = (value: number): string => (value < 100_000 ? number.format(value) : short.format(value))

export function milliseconds(value: number): string {
  if (value < 10) return `${Math.round(value * 10) / 10} ms`
  if (value < 10_000) return `${number.format(Math.round(value))} ms`
  return duration(value)
}

export function rate(value: number): string {
  return value < 10 ? String(Math.round(value * 10) / 10) : count(Math.round(value))
}

export const percent = (part: number): string =>
  `${part > 0 && part < 0.001 ? '< 0.1' : Math.round(part * 1_000) / 10} %`

export function bytes(value: number): string {
  if (value < 1_000) return `${value} B`
  const unit = value < 1_000_000 ? 'kB' : value < 1_000_000_000 ? 'MB' : 'GB'
  const scaled = value / { kB: 1_000, MB: 1_000_000, GB: 1_000_000_000 }[unit]
  return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${unit}`
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function duration(ms: number): string {
  const value = Math.max(0, ms)
  if (value < MINUTE) return `${Math.floor(value / SECOND)} s`
  if (value < HOUR) return `${Math.floor(value / MINUTE)} min`
  if (value < DAY) return `${Math.floor(value / HOUR)} h ${Math.floor((value % HOUR) / MINUTE)} min`
  return `${Math.floor(value / DAY)} d ${Math.floor((value % DAY) / HOUR)} h`
}

/** For display. */
export const json = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? ''

const twoDigits = (value: number) => String(value).padStart(2, '0')

export function clockTime(at: number): string {
  const date = new Date(at)
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`
}

/** Local date and time, to the millisecond. */
export function fullTime(at: number): string {
  const date = new Date(at)
  const day = `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`
  return `${day} ${clockTime(at)}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

export const plural = (amount: number, one: string, many = `${one}s`): string =>
  `${count(amount)} ${amount === 1 ? one : many}`
