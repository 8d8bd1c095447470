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

const truncate = (text: string, max: number) => (text.length > max ? `${text.slice(0, max)}…` : text)

const textAt = (thrown: unknown, key: 'name' | 'message' | 'stack', max: number): string | undefined => {
  const value = attempt(() => (thrown as Record<string, unknown>)[key])
  return typeof value === 'string' ? truncate(value, max) : undefined
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
  const text = truncate(errorText(cause), MAX_MESSAGE)
  return message.includes(text) ? undefined : text
}

export function describeThrown(thrown: unknown, withStack = false): ThrownText {
  const message = truncate(errorText(thrown), MAX_MESSAGE)
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
export function attributeError(thrown: unknown, plugin: string | undefined): void {
  if (canBeKey(thrown) && !plugins.has(thrown)) plugins.set(thrown, plugin)
}

export function attributionOf(thrown: unknown): { plugin?: string } {
  const plugin = canBeKey(thrown) ? plugins.get(thrown) : undefined
  return plugin === undefined ? {} : { plugin }
}

function framesOf(error: Error, directory: string, causes = MAX_CAUSES): ShownStack & { readonly lines: string[] } {
  const shown = shownStack(textAt(error, 'stack', MAX_STACK) ?? '', directory)
  const lines = [errorLine(error), ...shown.frames.map(frame => `    ${frame}`)]
  const cause = attempt(() => error.cause)
  if (!isError(cause) || causes === 0) return { ...shown, lines }
  const causeFrames = framesOf(cause, directory, causes - 1)
  return {
    ...causeFrames,
    ...shown,
    hidden: shown.hidden + causeFrames.hidden,
    lines: [...lines, ...causeFrames.lines.map((line, index) => (index === 0 ? `caused by: ${line}` : line))],
  }
}

function errorLine(error: Error): string {
  const name = textAt(error, 'name', 200) ?? 'Error'
  return `${name}: ${truncate(errorText(error), MAX_MESSAGE)}`
}

/** Describes a failure with its location and the author's stack frames, relative to `directory`. `fullStack`: all frames. */
export function describeFailure(
  thrown: unknown,
  { fullStack, directory }: { readonly fullStack: boolean; readonly directory: string },
): ThrownText {
  const described = describeThrown(thrown, fullStack)
  if (!isError(thrown)) return described
  const { at, hidden, lines } = framesOf(thrown, directory)
  const located = at === undefined ? described : { ...described, at }
  if (fullStack) return located
  return {
    ...located,
    ...(lines.length > 1 && { stack: truncate(lines.join('\n'), MAX_STACK) }),
    ...(hidden > 0 && { hidden: `${hidden} frames of Node and mcp-host: --log-level debug shows them` }),
  }
}

interface ShownStack {
  readonly at?: string
  readonly frames: readonly string[]
  readonly hidden: number
}

type Owner = 'author' | 'package' | 'own' | 'node'

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

function readFrame(line: string, directory: string) {
  const [, name, source, row, column] = FRAME.exec(line) ?? []
  if (source === undefined) return undefined
  const file = fileIn(source.replace(/^async /, ''))
  const short = relative(directory, file)
  const location = `${short.startsWith('..') || file.startsWith('node:') ? file : short}:${row}:${column}`
  return { owner: ownerOf(file), location, text: `at ${name === undefined ? location : `${name} (${location})`}` }
}

export function shownStack(stack: string, directory: string): ShownStack {
  const frames = stack.split('\n').flatMap(line => readFrame(line, directory) ?? [])
  const last = frames.findLastIndex(({ owner }) => owner === 'author')
  // Frames that called the author's code, such as Koa's, are omitted. A bug in this package shows only its own frames.
  const shownOwner: Owner = last === -1 ? 'own' : 'author'
  const shown = frames
    .slice(0, last === -1 ? undefined : last + 1)
    .filter(({ owner }) => owner === 'package' || owner === shownOwner)
  const first = shown.find(({ owner }) => owner === 'author') ?? shown[0]
  return {
    ...(first && { at: first.location }),
    frames: shown.map(({ text }) => text),
    hidden: frames.length - shown.length,
  }
}
