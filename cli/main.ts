#!/usr/bin/env node
// The bin: finds the verb, runs it, and turns what it throws into one clear message and an exit code.
import { parseArgs } from 'node:util'
import { StartError } from '../core/index.ts'
import { check } from './check.ts'
import { doctor } from './doctor.ts'
import { explain } from './explain.ts'
import { schema } from './schema.ts'
import { start } from './start.ts'
import { version } from './version.ts'

const USAGE = `Usage: mcp-host <verb> [options]

  start    serve the config until SIGTERM or SIGINT
  check    load and check the config; serve nothing
  explain  print what the config decides about a caller, step by step; serve nothing
  doctor   ask a running server from outside what its clients would; exits 1 when something is wrong
  schema   print the config's JSON Schema, for editors

Options
  -c, --config <file>  default: mcp.config.{ts,js,json,yaml,...} here or above
      --workers <n>    start: processes that share the port, or auto for one per core; default: this one alone
      --write <file>   schema: write it there instead
      --route <path>   explain: the address to ask about; default: /
      --token <token>  explain: the caller's token; @file reads it from a file, - from stdin
      --tool <name>    explain: one tool; also --prompt <name>, --resource <uri>
      --url <url>      doctor: the address that clients use; also --token, and --origin <origin> of a page
      --json           doctor: print the findings as JSON
      --verbose        debug lines in the log, stacks of errors
  -v, --version
  -h, --help`

export interface VerbOptions {
  readonly config: string | undefined
  readonly write: string | undefined
  readonly verbose: boolean
  readonly workers?: string | undefined
  readonly token?: string | undefined
  readonly route?: string | undefined
  readonly tool?: string | undefined
  readonly prompt?: string | undefined
  readonly resource?: string | undefined
  readonly url?: string | undefined
  readonly origin?: string | undefined
  readonly json?: boolean
}

const VERBS: Readonly<Record<string, (options: VerbOptions) => Promise<void>>> = {
  start,
  check,
  explain,
  doctor,
  schema,
}

function parse(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        config: { type: 'string', short: 'c' },
        workers: { type: 'string' },
        write: { type: 'string' },
        token: { type: 'string' },
        route: { type: 'string' },
        tool: { type: 'string' },
        prompt: { type: 'string' },
        resource: { type: 'string' },
        url: { type: 'string' },
        origin: { type: 'string' },
        json: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        version: { type: 'boolean', short: 'v', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (cause) {
    throw new StartError(`${(cause as Error).message}\n\n${USAGE}`, { cause, exitCode: 2 })
  }
}

async function run(argv: string[]): Promise<void> {
  const { values, positionals } = parse(argv)
  const [name, ...rest] = positionals
  if (values.version) return void console.log(version)
  if (values.help || name === undefined) return void console.log(USAGE)
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined
  if (!verb || rest.length > 0) {
    throw new StartError(`${verb ? `unexpected "${rest[0]}"` : `there is no verb "${name}"`}\n\n${USAGE}`, {
      exitCode: 2,
    })
  }
  const { version: _version, help: _help, config, write, ...options } = values
  await verb({ ...options, config, write })
}

function report(error: unknown, verbose: boolean): void {
  const known = error instanceof StartError
  const text = error instanceof Error ? error.message : String(error)
  console.error(`mcp-host: ${text}`)
  if (verbose) console.error(error)
  else if (!known) console.error('This is unexpected; run it again with --verbose for the stack.')
  // What a plugin opened before the start failed must not keep the process.
  process.exit(known ? error.exitCode : 1)
}

run(process.argv.slice(2)).catch(error => report(error, process.argv.includes('--verbose')))
