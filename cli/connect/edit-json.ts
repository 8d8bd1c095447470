// Sets one entry in the JSON file of another program. Everything else keeps its formatting, comments and trailing commas;
// otherwise the file is not changed. (`modify` of jsonc-parser reformats neighbouring entries and moves their comments.)

import { isDeepStrictEqual } from 'node:util'
import { createScanner, getNodeValue, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { isObject } from '../../core/index.ts'

const HIDDEN = '…'
/** Keys whose values are secrets as often as not. */
const SECRET_KEYS = new Set(['headers', 'env'])
/** Parameters of a query that let somebody in. */
const SECRET_NAME = /key|token|secret|passw|auth|credential|signature|^sig$/i

/** The names of the parameters of a URL that look like secrets. */
export function secretParameters(url: string): string[] {
  if (!URL.canParse(url)) return []
  return [...new Set(new URL(url).searchParams.keys())].filter(name => SECRET_NAME.test(name))
}

function hideInText(text: string): string {
  const hidden = text.replace(/\b(Bearer|Basic)\s+\S+/gi, `$1 ${HIDDEN}`)
  return hidden.replace(/([?&])([^=&#\s]+)=[^&#\s]+/g, (found, mark: string, name: string) =>
    SECRET_NAME.test(name) ? `${mark}${name}=${HIDDEN}` : found,
  )
}

const hideAll = (value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.keys(value).map(key => [key, HIDDEN])) : HIDDEN

/** The entry with `…` for the values of headers and environment, and for tokens in the rest. */
export function withoutSecrets(entry: unknown): unknown {
  if (typeof entry === 'string') return hideInText(entry)
  if (Array.isArray(entry)) return entry.map(withoutSecrets)
  if (!isObject(entry)) return entry
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [key, SECRET_KEYS.has(key) ? hideAll(value) : withoutSecrets(value)]),
  )
}

export interface Edit {
  /** The whole file. */
  readonly text: string
  /** Lines that go, without their comments and secrets, and lines that come. */
  readonly removed: readonly string[]
  readonly added: readonly string[]
}

interface Member {
  readonly key: string
  readonly value: Node
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

function readObject(text: string, { children = [], offset, length }: Node): ObjectText {
  const members = children.flatMap(({ children: [key, value] = [] }) =>
    key && value ? [{ key: String(key.value), value, start: value.offset, end: value.offset + value.length }] : [],
  )
  const scanner = createScanner(text, true)
  scanner.setPosition(members.at(-1)?.end ?? offset + 1)
  scanner.scan()
  return {
    members,
    open: offset + 1,
    close: offset + length - 1,
    hasTrailingComma: text[scanner.getTokenOffset()] === ',',
  }
}

/** JSON with comments and trailing commas. Throws a SyntaxError. */
function parseCommented(text: string): { value: unknown; root: Node | undefined } {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  if (errors[0]) throw new SyntaxError(`it is not JSON: ${printParseErrorCode(errors[0].error)}`)
  // A key `__proto__` stays a key in what JSON.parse makes.
  return { value: root && JSON.parse(JSON.stringify(getNodeValue(root))), root }
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
  root: Node,
  [section, name]: readonly [string, string],
  value: object,
  before: unknown,
) {
  const outer = readObject(text, root)
  const found = outer.members.findLast(({ key }) => key === section)
  if (!found) {
    const [changes, added] = insertMember(text, outer, section, { [name]: value })
    return { changes, added: lines(added), removed: [] }
  }
  const inner = readObject(text, found.value)
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
  const { root, value: before } = parseCommented(text)
  if (!root || !isObject(before)) throw new Error('it is not a JSON object')
  const servers = before[section]
  if (servers !== undefined && !isObject(servers)) throw new Error(`"${section}" in it is not an object`)
  if (servers && Object.hasOwn(servers, name) && isDeepStrictEqual(servers[name], value)) return undefined
  const { changes, added, removed } = planChanges(text, root, [section, name], value, servers?.[name])
  const after = applyChanges(text, changes)
  const wanted = { ...before, [section]: { ...servers, [name]: value } }
  if (!isDeepStrictEqual(parseCommented(after).value, wanted)) throw new Error('its formatting is not supported')
  return { text: mark + (given.includes('\r\n') ? after.replaceAll('\n', '\r\n') : after), removed, added }
}
