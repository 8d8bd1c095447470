// Reads the MCP servers in the configuration file of a client: Claude Desktop, Claude Code, VS Code, Cursor.
import { homedir } from 'node:os'
import { basename, dirname, sep } from 'node:path'
import { type ParseError, parse } from 'jsonc-parser'
import { isObject } from '../../core/plugin.ts'
import { usage } from '../context.ts'
import { Expression, quote } from '../edit-config.ts'

export interface ClientServer {
  readonly name: string
  readonly value: object
  /** Environment variables that the host requires. */
  readonly variables: readonly string[]
}

interface Reading {
  readonly folder: string
  readonly hasExpressions: boolean
}

const SECRET_NAME = /token|secret|key|password|passwd|auth|credential|cookie|(?:^|_)pat$/i

const SECRET_FLAG = /^--?[\w-]*(?:token|secret|key|password)\b/i

/** `${env:NAME}`, `${NAME}`, `${NAME:-default}` and `${input:id}`. */
const PLACEHOLDER = /\$\{(?:(env|input):)?([^}:]+)(?::-([^}]*))?\}/g

/** Placeholders that only the client can resolve. */
const OF_CLIENT = /\$\{(workspaceFolder|userHome|pathSeparator)\}/g

const variableOf = (kind: string | undefined, name: string): string =>
  kind === 'input' ? name.replaceAll(/[^A-Za-z0-9]+/g, '_').toUpperCase() : name

/** Derives a toolset name, which is part of paths and tool names. */
const toolsetName = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'server'

const escapeTemplate = (text: string): string => text.replaceAll(/[`\\]|\$\{/g, found => `\\${found}`)

const FIX = 'Use a config in code, such as mcp.config.ts of `mcp-host init`: it can read the environment.'

class ServerReader {
  readonly variables = new Set<string>()
  readonly notes: string[] = []
  /** The reason if the config cannot contain the server. */
  problem: string | undefined
  readonly #name: string
  readonly #reading: Reading

  constructor(name: string, reading: Reading) {
    this.#name = name
    this.#reading = reading
  }

  note(text: string): void {
    this.notes.push(`${this.#name}: ${text}`)
  }

  /** Returns a text, or code that reads the environment. Undefined, with a note or problem, if the config cannot contain it. */
  text(given: unknown, where: string): string | Expression | undefined {
    if (typeof given !== 'string') {
      this.note(`${where} is left out, because it is not a string`)
      return undefined
    }
    const own: Readonly<Record<string, string>> = {
      workspaceFolder: this.#reading.folder,
      userHome: homedir(),
      pathSeparator: sep,
    }
    const text = given.replaceAll(OF_CLIENT, (_, name: string) => own[name] ?? '')
    const found = [...text.matchAll(PLACEHOLDER)]
    if (found.length === 0) return text
    if (!this.#reading.hasExpressions) {
      const names = found.map(([, kind, name = '']) => variableOf(kind, name)).join(', ')
      this.problem ??= `left out, because ${where} contains ${names} of the environment. ${FIX}`
      return undefined
    }
    let code = ''
    let end = 0
    for (const match of found) {
      const [whole, kind, name = '', standard = ''] = match
      const variable = variableOf(kind, name)
      this.variables.add(variable)
      code += `${escapeTemplate(text.slice(end, match.index))}\${process.env[${quote(variable)}] ?? ${quote(standard)}}`
      end = match.index + whole.length
    }
    return new Expression(`\`${code}${escapeTemplate(text.slice(end))}\``)
  }

  texts(given: unknown, where: string): (string | Expression)[] {
    return (Array.isArray(given) ? given : []).flatMap(one => this.text(one, where) ?? [])
  }

  /** Secrets are not copied: the process inherits them from the environment of the host. */
  environment(given: unknown): { readonly env?: object; readonly passEnv?: readonly string[] } {
    const env: Record<string, string | Expression> = {}
    const passEnv: string[] = []
    for (const [name, value] of Object.entries(isObject(given) ? given : {})) {
      const [own] = [...String(value).matchAll(PLACEHOLDER)]
      const isOwn = own?.[0] === value && (own?.[1] === 'input' || own?.[2] === name)
      if (isOwn || SECRET_NAME.test(name)) {
        passEnv.push(name)
        this.variables.add(name)
        continue
      }
      const text = this.text(
        typeof value === 'number' || typeof value === 'boolean' ? String(value) : value,
        `env.${name}`,
      )
      if (text !== undefined) env[name] = text
    }
    return { ...(Object.keys(env).length > 0 && { env }), ...(passEnv.length > 0 && { passEnv }) }
  }

  headers(given: unknown): Record<string, string | Expression> {
    const headers: Record<string, string | Expression> = {}
    for (const [name, value] of Object.entries(isObject(given) ? given : {})) {
      const isSecret = SECRET_NAME.test(name) && typeof value === 'string' && !value.includes('${')
      if (isSecret) {
        const fix = this.#reading.hasExpressions ? 'Add it with process.env.' : FIX
        this.note(`header ${name} is left out, because it contains a secret. ${fix}`)
        continue
      }
      const text = this.text(value, `header ${name}`)
      if (text !== undefined) headers[name] = text
    }
    return headers
  }
}

/** Returns the value of a server in the config; undefined, with a note, if the server is left out. */
function readServer(reader: ServerReader, server: Readonly<Record<string, unknown>>): object | undefined {
  const { command, args, env, cwd, url = server['serverUrl'], headers, envFile } = server
  const isMissing = url === undefined && command === undefined
  if (server['disabled'] === true || isMissing) {
    const why = server['disabled'] === true ? 'it is disabled' : 'it has neither command nor URL'
    reader.note(`left out, because ${why}`)
    return undefined
  }
  if (envFile !== undefined) reader.note('envFile is left out: start mcp-host with --env-file')
  if (url !== undefined) {
    const address = reader.text(url, 'url')
    if (address === undefined) return undefined
    const sent = reader.headers(headers)
    return { url: address, ...(Object.keys(sent).length > 0 && { headers: sent }) }
  }
  const program = reader.text(command, 'command')
  if (program === undefined) return undefined
  const words = reader.texts(args, 'args')
  if (words.some(word => typeof word === 'string' && SECRET_FLAG.test(word)))
    reader.note('the copied args can contain a secret')
  const folder = cwd === undefined ? undefined : reader.text(cwd, 'cwd')
  return {
    command: program,
    ...(words.length > 0 && { args: words }),
    ...reader.environment(env),
    ...(folder !== undefined && { cwd: folder }),
  }
}

function serversIn(file: string, text: string): Readonly<Record<string, unknown>> {
  const errors: ParseError[] = []
  const parsed: unknown = parse(text.replace(/^\ufeff/, ''), errors, { allowTrailingComma: true })
  if (errors.length > 0 || !isObject(parsed)) throw usage(`${file} is not a JSON object`)
  const nested = isObject(parsed['mcp']) ? parsed['mcp'] : {}
  const servers = parsed['mcpServers'] ?? parsed['servers'] ?? nested['servers']
  if (!isObject(servers)) throw usage(`${file} has no MCP servers: neither "mcpServers" nor "servers"`)
  return servers
}

function projectOf(file: string): string {
  const folder = dirname(file)
  return ['.vscode', '.cursor'].includes(basename(folder)) ? dirname(folder) : folder
}

/** `notes`: messages about values that were not copied. */
export function readClientFile(file: string, text: string, hasExpressions: boolean) {
  const reading = { folder: projectOf(file), hasExpressions }
  const servers: ClientServer[] = []
  const notes: string[] = []
  const names = new Set<string>()
  for (const [given, server] of Object.entries(serversIn(file, text))) {
    if (!isObject(server)) {
      notes.push(`${given}: left out, because it is not an object`)
      continue
    }
    const reader = new ServerReader(given, reading)
    const value = readServer(reader, server)
    notes.push(...(reader.problem === undefined ? reader.notes : [`${given}: ${reader.problem}`]))
    if (value === undefined || reader.problem !== undefined) continue
    let name = toolsetName(given)
    for (let count = 2; names.has(name); count++) name = `${toolsetName(given)}-${count}`
    names.add(name)
    servers.push({ name, value, variables: [...reader.variables] })
  }
  return { servers, notes }
}
