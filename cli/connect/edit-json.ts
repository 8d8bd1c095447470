// Sets one entry in a file of JSON that belongs to somebody else: everything beside it stays as it is written, comments and
// trailing commas included. What cannot be changed so is not changed. (`jsonc-parser` reformats the neighbours of an entry, and
// moves their comments behind it.)
import { isDeepStrictEqual } from 'node:util'
import { parseCommented, readTokens, type Token } from '../../core/config/tokens.ts'
import { isObject } from '../../core/index.ts'
import { withoutSecrets } from './entry-secrets.ts'

export interface Edit {
  /** The whole file. */
  readonly text: string
  /** Lines that go, without their comments and secrets, and lines that come. */
  readonly removed: readonly string[]
  readonly added: readonly string[]
}

interface Member {
  readonly key: string
  /** Offsets of the value. */
  readonly start: number
  readonly end: number
}

interface ObjectText {
  readonly members: readonly Member[]
  /** Offset behind the brace that opens it, and of the one that closes it. */
  readonly open: number
  readonly close: number
  /** True where a comma stands behind the last member. */
  readonly hasTrailingComma: boolean
}

const OPENING = new Set(['{', '['])
const CLOSING = new Set(['}', ']'])

/** Reads an object whose brace is that token; the text was parsed before. */
function readObject(tokens: readonly Token[], from: number): ObjectText {
  const members: Member[] = []
  let depth = 1
  let key: Token | undefined
  let first: Token | undefined
  let last: Token | undefined
  const endMember = () => {
    if (key && first && last) members.push({ key: JSON.parse(key.text) as string, start: first.start, end: last.end })
    key = undefined
    first = undefined
  }
  for (let index = from + 1; ; index++) {
    const token = tokens[index]
    if (!token) throw new SyntaxError('an object does not end')
    if (CLOSING.has(token.text)) depth--
    if (depth === 0) {
      endMember()
      const hasTrailingComma = tokens[index - 1]?.text === ','
      return { members, open: tokens[from]?.end ?? 0, close: token.start, hasTrailingComma }
    }
    if (depth === 1 && token.text === ',') endMember()
    else if (depth === 1 && !key) key = token
    else if (!(depth === 1 && token.text === ':' && !first)) {
      first ??= token
      last = token
    }
    if (OPENING.has(token.text)) depth++
  }
}

const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset))?.[0] ?? ''

/** Spaces or tabs of one level. */
const unitOf = (text: string): string => /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '

interface Change {
  readonly at: number
  readonly until: number
  readonly with: string
}

function applyChanges(text: string, changes: readonly Change[]): string {
  return changes.reduceRight(
    (whole, change) => whole.slice(0, change.at) + change.with + whole.slice(change.until),
    text,
  )
}

const indented = (value: unknown, unit: string, indent: string) =>
  JSON.stringify(value, undefined, unit).replaceAll('\n', `\n${indent}`)

function insertMember(text: string, object: ObjectText, key: string, value: unknown): [Change[], string] {
  const unit = unitOf(text)
  const outer = indentAt(text, object.open)
  const [before] = object.members
  const isOnOwnLine = before !== undefined && text.slice(object.open, before.start).includes('\n')
  const keyAt = before === undefined ? 0 : text.lastIndexOf('"', text.lastIndexOf(':', before.start))
  const indent = isOnOwnLine ? indentAt(text, keyAt) : outer + unit
  const member = `${JSON.stringify(key)}: ${indented(value, unit, indent)}`
  const last = object.members.at(-1)
  const at = Math.max(text.slice(0, object.close).trimEnd().length, object.open)
  const closing = text.slice(at, object.close).includes('\n') ? '' : `\n${outer}`
  const comma = last && !object.hasTrailingComma ? [{ at: last.end, until: last.end, with: ',' }] : []
  return [[...comma, { at, until: at, with: `\n${indent}${member}${closing}` }], `${indent}${member}`]
}

function replaceValue(text: string, { key, start, end }: Member, value: unknown, old: unknown) {
  const indent = indentAt(text, start)
  const unit = unitOf(text)
  const written = indented(value, unit, indent)
  const named = `${indent}${JSON.stringify(key)}: `
  const changes: Change[] = [{ at: start, until: end, with: written }]
  return { changes, added: named + written, removed: named + indented(withoutSecrets(old), unit, indent) }
}

const lines = (text: string): string[] => text.split('\n')

/** The changes that set `[section][name]`, and what of it is to be shown. */
function planChanges(
  text: string,
  tokens: readonly Token[],
  [section, name]: readonly [string, string],
  value: object,
  before: unknown,
) {
  const root = readObject(tokens, 0)
  const found = root.members.findLast(({ key }) => key === section)
  if (!found) {
    const [changes, added] = insertMember(text, root, section, { [name]: value })
    return { changes, added: lines(added), removed: [] }
  }
  const inner = readObject(
    tokens,
    tokens.findIndex(({ start }) => start === found.start),
  )
  const old = inner.members.findLast(({ key }) => key === name)
  if (!old) {
    const [changes, added] = insertMember(text, inner, name, value)
    return { changes, added: lines(added), removed: [] }
  }
  const { changes, added, removed } = replaceValue(text, old, value, before)
  return { changes, added: lines(added), removed: lines(removed) }
}

/**
 * The text with `value` at `[section][name]`. `undefined` where it is there already. Throws an Error that says why where the
 * text cannot be changed.
 */
export function setEntry(given: string, [section, name]: readonly [string, string], value: object): Edit | undefined {
  if (given.trim() === '') {
    const added = JSON.stringify({ [section]: { [name]: value } }, undefined, 2)
    return { text: `${added}\n`, removed: [], added: lines(added) }
  }
  const mark = given.startsWith('\ufeff') ? '\ufeff' : ''
  const text = given.slice(mark.length).replaceAll('\r\n', '\n')
  const tokens = readTokens(text)
  const before = parseCommented(tokens)
  if (!isObject(before)) throw new Error('it is no JSON object')
  const servers = before[section]
  if (servers !== undefined && !isObject(servers)) throw new Error(`"${section}" in it is no object`)
  if (servers && Object.hasOwn(servers, name) && isDeepStrictEqual(servers[name], value)) return undefined
  const { changes, added, removed } = planChanges(text, tokens, [section, name], value, servers?.[name])
  const after = applyChanges(text, changes)
  const wanted = { ...before, [section]: { ...servers, [name]: value } }
  if (!isDeepStrictEqual(parseCommented(readTokens(after)), wanted)) throw new Error('it is written in an unusual way')
  return { text: mark + (given.includes('\r\n') ? after.replaceAll('\n', '\r\n') : after), removed, added }
}
