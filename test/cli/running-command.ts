// A running CLI command, as a process (run-cli.ts) or in the process of the test (in-process.ts), and configs for both.
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** The repository's folder. */
export const ROOT = join(import.meta.dirname, '../..')

export interface Ended {
  /** The exit code, or the signal that ended the process. */
  readonly code: number | NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: {
    readonly stdin: Writable
    kill(signal?: NodeJS.Signals): unknown
  }
  /** Resolves when the command has ended and all output was read. */
  readonly ended: Promise<Ended>
  /** Waits until stdout has `words` and returns the match. Rejects when the command ends without it, or after `patience` ms (50,000). */
  printed(words: RegExp, patience?: number): Promise<RegExpExecArray>
  /** The same for stderr. */
  logged(words: RegExp, patience?: number): Promise<RegExpExecArray>
  /** Waits until it serves, and returns where. */
  listening(): Promise<string>
}

/** Milliseconds; less than tests have, so that a failure shows the output so far. */
const PATIENCE = 120_000

type Outputs = Readonly<Record<'stdout' | 'stderr', Readable>>

/** Reads both outputs. `ending` resolves once they are at their end. `shown` is applied to all that was read. */
export function follow(
  outputs: Outputs,
  ending: Promise<Ended['code']>,
  shown: (text: string) => string = text => text,
): Omit<Running, 'child'> {
  const text = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    outputs[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk
    })
  }
  const ended = ending.then((code): Ended => ({ code, stdout: shown(text.stdout), stderr: shown(text.stderr) }))

  async function written(stream: 'stdout' | 'stderr', words: RegExp, patience = PATIENCE): Promise<RegExpExecArray> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), patience).unref()
    try {
      for (;;) {
        const match = words.exec(shown(text[stream]))
        if (match) return match
        const end = await Promise.race([once(outputs[stream], 'data', { signal: late.signal }), ended])
        if (!Array.isArray(end) && !words.test(end[stream])) {
          throw new Error(`ended with ${end.code} without ${words}:\n${end.stdout}${end.stderr}`)
        }
      }
    } catch (cause) {
      if (!late.signal.aborted) throw cause
      throw new Error(`waited ${patience} ms in vain for ${words}:\n${text.stdout}${text.stderr}`, { cause })
    } finally {
      clearTimeout(timer)
      late.abort()
    }
  }

  const printed = (words: RegExp, patience?: number) => written('stdout', words, patience)
  const logged = (words: RegExp, patience?: number) => written('stderr', words, patience)
  const listening = async () => (await printed(/^listening on (https?:\S+)$/m))[1] ?? ''
  return { ended, printed, logged, listening }
}

export interface ConfigParts {
  /** JavaScript in front of the config. */
  readonly before?: string
  readonly http?: string
  readonly routes?: string
  /** Default: one that is long enough. */
  readonly secrets?: string
  /** Properties of `plugins`, beside the transport. */
  readonly plugins?: string
  /** The one tool of the second toolset. */
  readonly tool?: string
}

const OTHER = "defineTool({ name: 'other', handler: () => 'other' })"

/** The text of an `mcp.config.mjs`; each part is JavaScript. `core`: the URL of the core's modules. */
export const configWith = (
  core: string,
  parts: ConfigParts,
): string => `import { definePlugin, defineTool } from '${core}'
${parts.before ?? ''}
export default {
  server: { name: 'cli-test', version: '1.0.0' },
  http: ${parts.http ?? '{ port: 0 }'},
  secrets: ${parts.secrets ?? "['a secret for tests, long enough to be one']"},
  toolsets: { first: [defineTool({ name: 'echo', handler: () => 'echoed' })], second: [${parts.tool ?? OTHER}] },
  routes: ${parts.routes ?? "{ '/': { toolsets: ['first', 'second'] } }"},
  plugins: { 'transport-streamable': {}, ${parts.plugins ?? ''} },
}
`

/** The environment of this process without the variables of npm, which change the commands that are printed. */
export const plainEnvironment = (): NodeJS.ProcessEnv => {
  const { npm_execpath: _, npm_command: __, ...env } = process.env
  return env
}
