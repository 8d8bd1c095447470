// Runs an MCP server as a process group of its own, and ends it: stdin closed, SIGTERM, SIGKILL.
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { CommandTarget } from '../connection-types.ts'
import { printable, RemoteError } from '../errors.ts'
import { guardGroup, unguardGroup } from './guardian.ts'
import { createLineSplitter } from './lines.ts'

/** Environment variables that every server gets. */
const PASSED_VARIABLES = ['PATH', 'HOME', 'LANG', 'TZ', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TMPDIR'] as const
const WINDOWS_VARIABLES = ['SystemRoot', 'SystemDrive', 'ComSpec', 'PATHEXT', 'TEMP', 'USERPROFILE', 'APPDATA'] as const

/** Maximum consecutive lines without JSON. A program with more is not considered an MCP server. */
const MAX_INVALID_LINES = 10
/** Maximum unsent bytes to a server that does not read. */
const MAX_UNREAD = 16 * 1_024 * 1_024
/** Time between closing stdin and SIGTERM, milliseconds. */
const STOP_GRACE = 2_000
const TERM_GRACE = 3_000
/** Time to read the output of an ended process, milliseconds: a process that left the group can hold it open. */
const OUTPUT_GRACE = 1_000
const MISSING_VARIABLE = /(?<!\[redacted: [^\]]{0,99})(?:environment|KeyError|_(?:key|token|secret|url)\b|credential)/i
const VARIABLE_ADVICE = '; an environment variable may be missing: add it with `env` or `passEnv`'

export interface ServerProcessEvents {
  /** Receives a line that begins like JSON. */
  line(line: Buffer): void
  /** Receives lines of stderr, and lines of stdout that are not JSON. */
  printed(line: string): void
  /** Called once when the process has ended, or when its output is unusable and it is being ended. */
  ended(error: RemoteError): void
}

function buildEnvironment({ env = {}, passEnv = [] }: CommandTarget): Record<string, string> {
  const names = [...PASSED_VARIABLES, ...(process.platform === 'win32' ? WINDOWS_VARIABLES : []), ...passEnv]
  const passed = names.flatMap(name => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(passed), ...env }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  if (process.platform === 'win32') {
    spawnSync('taskkill', ['/PID', String(pid), '/T', '/F'])
    return
  }
  try {
    process.kill(-pid, signal)
  } catch {
    // The process group has already ended.
  }
}

const isJson = (line: Buffer): boolean => line[0] === 0x7b || line[0] === 0x5b

function trimStart(line: Buffer): Buffer {
  let start = 0
  while (line[start] === 0x20 || line[start] === 0x09) start++
  return start === 0 ? line : line.subarray(start)
}

function startError(command: string, cause: NodeJS.ErrnoException): RemoteError {
  const advice = command.includes(' ')
    ? '; write the command and its arguments as separate list entries'
    : '; install the program or use its full path, and check `cwd`'
  const fix = cause.code === 'ENOENT' ? advice : ''
  return new RemoteError('unreachable', `cannot start ${command}: ${cause.message}${fix}`, { cause })
}

const MAX_STDERR_LINE = 8 * 1_024
const MAX_SHOWN = 200
const MAX_LINES = 100
/** Period of the line limit, milliseconds. */
const WINDOW = 60_000
const MAX_LAST_LINES = 20
/** Characters in one call of `log`, because log fields are truncated. */
const MAX_BURST = 900

const MIN_REDACTED = 6
function createRedactor({ env = {}, passEnv = [] }: CommandTarget): (text: string) => string {
  const values = [...Object.entries(env), ...passEnv.map(name => [name, process.env[name] ?? ''] as const)]
    .flatMap(([name, value]) => value.split(/\r?\n/).map(line => ({ line, placeholder: `[redacted: ${name}]` })))
    .filter(({ line }) => line.length >= MIN_REDACTED)
    .sort((one, other) => other.line.length - one.line.length)
  return text => values.reduce((clean, { line, placeholder }) => clean.replaceAll(line, () => placeholder), text)
}

/**
 * Reads all of stderr, so that the server never blocks; `keepLine` adds other lines. `last` has the last lines. `log` receives lines
 * that are written at once, such as a stack trace, in one call: at most 100 lines a minute, and then the number of omitted lines.
 */
function collectOutput({ stderr }: ChildProcessWithoutNullStreams, target: CommandTarget, log: (line: string) => void) {
  const redact = createRedactor(target)
  const last: string[] = []
  let burst: string[] = []
  let windowStart = performance.now()
  let count = 0
  let omitted = 0

  function flush(): void {
    if (burst.length > 0) log(burst.join('\n'))
    burst = []
  }

  function keepLine(line: string, maxLength?: number): void {
    const text = printable(redact(line)).slice(0, maxLength)
    last.push(text)
    if (last.length > MAX_LAST_LINES) last.shift()
    if (performance.now() - windowStart > WINDOW) {
      if (omitted > 0) burst.push(`(${omitted} lines omitted)`)
      windowStart = performance.now()
      count = omitted = 0
    }
    if (++count > MAX_LINES) return void omitted++
    if (burst.join().length + text.length > MAX_BURST) flush()
    burst.push(text)
  }

  const split = createLineSplitter(MAX_STDERR_LINE, {
    onLine: line => line.length > 0 && keepLine(line.toString()),
    onTooLong: () => keepLine(`(a line of more than ${MAX_STDERR_LINE} bytes)`),
  })
  stderr.on('data', (chunk: Buffer) => {
    split(chunk)
    flush()
  })
  stderr.on('error', () => undefined)
  return { last, keepLine, flush }
}

const SCRIPT = /\.(?:[cm]?[jt]s|py|rb|php|sh|jar)$/i

/** Returns the program and its script name for messages. Other arguments can contain secrets. */
function describeProgram({ command, args = [], cwd = '.' }: CommandTarget): string {
  const script = args.find(arg => SCRIPT.test(arg) && existsSync(resolve(cwd, arg)))
  return script === undefined ? command : `${command} ${printable(basename(script))}`
}

export function startServerProcess(target: CommandTarget, maxLine: number, events: ServerProcessEvents) {
  const { command, args = [], cwd, stopGrace = STOP_GRACE } = target
  const program = describeProgram(target)
  let child: ChildProcessWithoutNullStreams
  try {
    child = spawn(command, args, {
      detached: process.platform !== 'win32',
      env: buildEnvironment(target),
      ...(cwd !== undefined && { cwd }),
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    })
  } catch (cause) {
    throw startError(command, cause as Error)
  }
  const { pid } = child
  if (pid !== undefined) guardGroup(pid)
  const output = collectOutput(child, target, line => events.printed(line))
  let isEnding = false
  let isOver = false
  let hasResponded = false
  let invalidLines = 0
  let ending: Promise<void> | undefined

  const readOutput = () => (output.last.length === 0 ? undefined : output.last.join('\n'))

  function report(error: RemoteError): void {
    if (isOver) return
    isOver = true
    if (!isEnding) events.ended(error)
  }

  function abort(error: RemoteError): void {
    report(error)
    void end()
  }

  function handleLine(rawLine: Buffer): void {
    const line = trimStart(rawLine)
    if (line.length === 0 || isOver) return
    if (isJson(line)) {
      invalidLines = 0
      hasResponded = true
      try {
        events.line(line)
      } catch (cause) {
        abort(new RemoteError('invalid', `cannot handle a message of ${program}`, { cause, executed: 'maybe' }))
      }
      return
    }
    output.keepLine(`(stdout) ${line.length > MAX_STDERR_LINE ? 'a long line' : line}`, MAX_SHOWN)
    output.flush()
    const problem = `${program} prints lines on stdout that are not JSON: an MCP server must log to stderr`
    if (++invalidLines >= MAX_INVALID_LINES) abort(new RemoteError('invalid', problem, { output: readOutput() }))
  }

  function onTooLong(): void {
    const problem = `${program} sent a message of more than ${maxLine} bytes`
    abort(new RemoteError('too-large', problem, { executed: 'maybe' }))
  }

  child.stdout.on('data', createLineSplitter(maxLine, { onLine: handleLine, onTooLong }))
  for (const stream of [child.stdin, child.stdout]) stream.on('error', () => undefined)

  const exited = new Promise<void>(resolve => {
    child.once('error', cause => {
      report(startError(command, cause))
      if (pid === undefined) resolve()
    })
    child.once('exit', (code, signal) => {
      // Child processes of the server are in the same group.
      signalGroup(pid, 'SIGKILL')
      resolve()
      const timer = setTimeout(() => {
        child.stdout.destroy()
        child.stderr.destroy()
      }, OUTPUT_GRACE)
      // The last output of the server can still arrive.
      const outcome = signal === null ? `exit code ${code}` : String(signal)
      child.once('close', () => {
        clearTimeout(timer)
        const isVariableMissing = !hasResponded && code !== 0 && MISSING_VARIABLE.test(readOutput() ?? '')
        const message = `${program} has ended (${outcome})${isVariableMissing ? VARIABLE_ADVICE : ''}`
        report(new RemoteError('lost', message, { output: readOutput() }))
      })
    })
  })
  const closed = new Promise<void>(resolve => {
    if (pid === undefined) return resolve(exited)
    child.once('close', () => {
      unguardGroup(pid)
      resolve()
    })
  })

  function waitFor(milliseconds: number): Promise<boolean> {
    const stop = new AbortController()
    const outcomes = [exited.then(() => true), delay(milliseconds, false, stop)]
    return Promise.race(outcomes).finally(() => stop.abort())
  }

  async function terminate(): Promise<void> {
    child.stdin.end()
    if (await waitFor(stopGrace)) return closed
    signalGroup(pid, 'SIGTERM')
    if (await waitFor(TERM_GRACE)) return closed
    signalGroup(pid, 'SIGKILL')
    return closed
  }

  function end(): Promise<void> {
    isEnding = true
    ending ??= terminate()
    return ending
  }

  return {
    /** The last lines that it printed. */
    output: readOutput,
    /** Throws if the server does not read its input, or has ended. */
    write(line: string): void {
      if (isOver || isEnding) throw new RemoteError('lost', `${program} has ended`, { output: readOutput() })
      if (child.stdin.writableLength > MAX_UNREAD)
        throw new RemoteError('refused', `${program} does not read its input`)
      child.stdin.write(`${line}\n`)
    },
    /** Resolves when the process and its group have ended. */
    end,
  }
}
