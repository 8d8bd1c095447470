// Describes any thrown value for the log without throwing itself: tools can throw proxies and errors with failing getters.

import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAX_MESSAGE = 2_000
const MAX_STACK = 8_000

interface ThrownText {
  readonly type?: string
  readonly message: string
  readonly cause?: string
  readonly stack?: string
  readonly at?: string
  readonly hidden?: string
}

/** Returns undefined if `read` throws. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const shortened = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}…` : text)

const textAt = (thrown: unknown, key: 'name' | 'message' | 'stack', most: number): string | undefined => {
  const value = attempt(() => (thrown as Record<string, unknown>)[key])
  return typeof value === 'string' ? shortened(value, most) : undefined
}

export const isError = (thrown: unknown): thrown is Error => attempt(() => thrown instanceof Error) ?? false

export const isBranded = (thrown: unknown, brand: symbol): boolean =>
  attempt(() => thrown instanceof Error && brand in thrown) ?? false

/** Returns the full text, because a startup message can list many problems. */
export function errorText(thrown: unknown): string {
  if (isError(thrown)) return textAt(thrown, 'message', Infinity) ?? 'an error whose message cannot be read'
  return attempt(() => String(thrown)) ?? 'a value that cannot be written as text'
}

function causeOf(error: Error, message: string): string | undefined {
  const cause = attempt(() => error.cause)
  if (cause === undefined) return undefined
  const text = shortened(errorText(cause), MAX_MESSAGE)
  return message.includes(text) ? undefined : text
}

export function describeThrown(thrown: unknown, withStack = false): ThrownText {
  const message = shortened(errorText(thrown), MAX_MESSAGE)
  if (!isError(thrown)) return { message }
  const type = textAt(thrown, 'name', 200)
  const cause = causeOf(thrown, message)
  const stack = withStack ? textAt(thrown, 'stack', MAX_STACK) : undefined
  return {
    ...(type !== undefined && { type }),
    message,
    ...(cause !== undefined && { cause }),
    ...(stack !== undefined && { stack }),
  }
}

const MAX_CAUSES = 3

const plugins = new WeakMap<object, string | undefined>()

const canBeKey = (thrown: unknown): thrown is object => typeof thrown === 'object' && thrown !== null

/** Records the plugin whose code threw. The first call counts. */
export function blame(thrown: unknown, plugin: string | undefined): void {
  if (canBeKey(thrown) && !plugins.has(thrown)) plugins.set(thrown, plugin)
}

export function blamed(thrown: unknown): { plugin?: string } {
  const plugin = canBeKey(thrown) ? plugins.get(thrown) : undefined
  return plugin === undefined ? {} : { plugin }
}

function framesOf(error: Error, directory: string, causes = MAX_CAUSES): ShownStack & { readonly lines: string[] } {
  const shown = shownStack(textAt(error, 'stack', MAX_STACK) ?? '', directory)
  const lines = [errorLine(error), ...shown.frames.map(frame => `    ${frame}`)]
  const cause = attempt(() => error.cause)
  if (!isError(cause) || causes === 0) return { ...shown, lines }
  const below = framesOf(cause, directory, causes - 1)
  return {
    ...below,
    ...shown,
    left: shown.left + below.left,
    lines: [...lines, ...below.lines.map((line, index) => (index === 0 ? `caused by: ${line}` : line))],
  }
}

function errorLine(error: Error): string {
  const name = textAt(error, 'name', 200) ?? 'Error'
  return `${name}: ${shortened(errorText(error), MAX_MESSAGE)}`
}

/** Describes a failure with its location and the author's stack frames, relative to `directory`. `whole`: all frames. */
export function describeFailure(
  thrown: unknown,
  { whole, directory }: { readonly whole: boolean; readonly directory: string },
): ThrownText {
  const described = describeThrown(thrown, whole)
  if (!isError(thrown)) return described
  const { at, left, lines } = framesOf(thrown, directory)
  const place = at === undefined ? described : { ...described, at }
  if (whole) return place
  return {
    ...place,
    ...(lines.length > 1 && { stack: shortened(lines.join('\n'), MAX_STACK) }),
    ...(left > 0 && { hidden: `${left} frames of Node and mcp-host: --log-level debug shows them` }),
  }
}

interface ShownStack {
  readonly at?: string
  readonly frames: readonly string[]
  readonly left: number
}

type Owner = 'author' | 'package' | 'own' | 'node'

interface Frame {
  readonly owner: Owner
  readonly place: string
  readonly text: string
}

const FRAME = /^\s+at (?:(.+?) \()?(.+?):(\d+):(\d+)\)?$/
const NOT_OWN = /^(?:examples|test|node_modules)[\\/]|^[^\\/]+$/

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

function ownerOf(file: string): Owner {
  if (file.startsWith('node:')) return 'node'
  const within = relative(ROOT, file)
  if (!within.startsWith('..') && within !== file && !NOT_OWN.test(within)) return 'own'
  return file.includes(`${sep}node_modules${sep}`) ? 'package' : 'author'
}

function fileIn(location: string): string {
  if (!location.startsWith('file:')) return location
  return attempt(() => fileURLToPath(location.replace(/[?#].*$/s, ''))) ?? location
}

function readFrame(line: string, directory: string): Frame | undefined {
  const [, name, location, row, column] = FRAME.exec(line) ?? []
  if (location === undefined) return undefined
  const file = fileIn(location.replace(/^async /, ''))
  const short = relative(directory, file)
  const place = `${short.startsWith('..') || file.startsWith('node:') ? file : short}:${row}:${column}`
  return { owner: ownerOf(file), place, text: `at ${name === undefined ? place : `${name} (${place})`}` }
}

export function shownStack(stack: string, directory: string): ShownStack {
  const frames = stack.split('\n').flatMap(line => readFrame(line, directory) ?? [])
  const last = frames.findLastIndex(({ owner }) => owner === 'author')
  // Frames that called the author's code, such as Koa's, are omitted. A bug in this package shows only its own frames.
  const other: Owner = last === -1 ? 'own' : 'author'
  const shown = frames
    .slice(0, last === -1 ? undefined : last + 1)
    .filter(({ owner }) => owner === 'package' || owner === other)
  const first = shown.find(({ owner }) => owner === 'author') ?? shown[0]
  return {
    ...(first && { at: first.place }),
    frames: shown.map(({ text }) => text),
    left: frames.length - shown.length,
  }
}
