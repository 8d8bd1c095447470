// Reads one document, and serves and replaces its toolset.
import { isDeepStrictEqual } from 'node:util'
import type { ResourceDefinition, ToolDefinition } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import {
  type CatalogItem,
  parseDuration,
  parseSize,
  type Route,
  type ServedToolset,
  StartError,
} from '../../core/plugin.ts'
import { callOf } from '../../core/transport.ts'
import type { Logins } from '../families/credentials/index.ts'
import { countsText } from '../families/texts/index.ts'
import { type RecordUpstreamCall, upstreamCallsOf } from '../families/upstream-calls/index.ts'
import { defaultId } from './api.ts'
import { findCredentialErrors, planCredentials } from './credentials.ts'
import { defineApiResource, defineApiTool, type SendRequest } from './define-items.ts'
import { createLoad } from './document/load.ts'
import type { Operation } from './operation.ts'
import type { Source } from './options.ts'
import type { ReadDocument } from './read-api.ts'
import { readDocument } from './read-document.ts'
import type { ApiTool } from './read-tool.ts'
import { createRequester, type Requester } from './request.ts'
import { failureOf } from './response.ts'
import { isRestricting } from './select.ts'
import { createTrust } from './servers.ts'

type ApiDefinition = ToolDefinition | ResourceDefinition

/** Maximum problems of one document that are reported individually. */
const MAX_REPORTED = 10

export const isRemote = ({ document, overlay }: Pick<Source, 'document' | 'overlay'>): boolean =>
  [document, overlay ?? []].flat().some(name => /^https?:/.test(name))

/** A document with its toolset. */
export class ServedDocument {
  readonly #host: InternalHost
  readonly #logins: Logins
  readonly #name: string
  readonly #at: readonly (string | number)[]
  readonly #retired = new Set<Requester>()
  readonly #record: RecordUpstreamCall
  readonly #closing = new AbortController()
  #source: Source
  /** The options and the document of the served version. */
  #defined: Source | undefined
  #read: ReadDocument | undefined
  /** The last name and override of each operation that was served. */
  readonly #known = new Map<string, { readonly name: string; readonly override: string }>()
  #served: ServedToolset | undefined
  #requester: Requester | undefined
  /** Tools without credentials. */
  #left: readonly ApiTool[] = []

  constructor(host: InternalHost, name: string, source: Source, logins: Logins) {
    this.#host = host
    this.#logins = logins
    this.#name = name
    this.#source = source
    this.#at = [...host.config.at, 'documents', name]
    this.#record = upstreamCallsOf(host)
  }

  get isRemote(): boolean {
    return isRemote(this.#source)
  }

  /** Reads the document. Throws a StartError for a document that cannot be used. */
  async read(source = this.#source): Promise<ReadDocument> {
    const { allowHosts = [] } = source
    const open = () => this.#host.services.openConnections({ allowHosts, connections: 1 })
    const load = createLoad(open, path => this.#host.reads(path))
    const settings = { directory: this.#host.config.directory, load, signal: this.#closing.signal }
    const read = await readDocument(source, settings)
    if ('code' in read) throw this.#error(read.code, ['document'], read.text)
    return read
  }

  /** Registers the toolset, in `setup`. Without a document, it is read later. */
  add(read?: ReadDocument): void {
    if (read) this.#report(read)
    const definitions = read && defineOrReport(this.#host.report, () => this.#define(read))
    this.#served = this.#host.toolset(this.#name, definitions, {
      at: ['documents', this.#name],
      fix: `set \`prefix\` of plugins.openapi.documents.${this.#name}`,
      describe: () => this.#describe(),
    })
  }

  /** The state for the start page and `explain`. */
  #describe(): string {
    if (!this.#read) return 'the document is read at startup'
    const { tools, faults } = this.#read
    const resources = tools.filter(tool => tool.pathArguments && !this.#left.includes(tool)).length
    const served = { tools: tools.length - this.#left.length, ...(resources > 0 && { resources }) }
    const others = [
      [this.#left.length, 'left out: no credentials'],
      [faults.length, 'left out: invalid'],
      [tools.filter(isSimplified).length, 'with simplified schemas'],
    ] as const
    return [countsText(served), ...others.flatMap(([count, what]) => (count > 0 ? `${count} ${what}` : []))].join(', ')
  }

  /** Reads and serves a document at a URL in `onReady`, so that `check`, `lock` and `start --frozen` include its tools. */
  async addEarly(): Promise<ReadDocument> {
    const read = await this.read()
    this.#report(read)
    this.#served?.replace(defineOrReport(this.#host.report, () => this.#define(read)))
    return read
  }

  #error(code: string, at: readonly (string | number)[], text: string): StartError {
    return new StartError(code, text, { at: [...this.#at, ...at] })
  }

  #report({ unknownKeys, faults, notes, unmatched }: ReadDocument): void {
    for (const { at, text } of unknownKeys) this.#host.report(this.#error('MH3403', at, text))
    for (const text of limitList(faults)) this.#host.report(this.#error('MH3404', ['document'], text), 'warning')
    for (const text of limitList(notes)) this.#host.report(this.#error('MH3405', ['document'], text), 'warning')
    for (const { at, text } of unmatched) this.#host.report(this.#error('MH3405', at, text), 'warning')
  }

  /** Logs problems after set-up, when `report` is not available. */
  #logProblems({ unknownKeys, faults, notes, unmatched }: ReadDocument): void {
    const keys = unknownKeys.map(({ at, text }) => `${at.join('.')}: ${text}`)
    const problems = [...keys, ...faults, ...notes, ...unmatched.map(({ text }) => text)]
    if (problems.length === 0) return
    this.#host.log.warn(
      { code: 'MH3411', document: this.#name, problems: limitList(problems) },
      'ignored invalid parts of an OpenAPI document',
    )
  }

  /** Creates the definitions of a document, with a new requester. Throws a StartError for unusable credentials. */
  #define(read: ReadDocument, source = this.#source): ApiDefinition[] {
    const { allowHosts = [], credentials = {}, headers = {}, auth, forwardHeaders, retries, concurrency } = source
    const { clock, log } = this.#host
    const what = this.#at.join('.')
    const services = () => this.#host.services
    const [fault] = findCredentialErrors(read.securitySchemes, credentials, createTrust(read.origins, source))
    if (fault) throw this.#error('MH3406', ['credentials', fault.scheme], fault.text)
    const plan = planCredentials({
      what,
      schemes: read.securitySchemes,
      credentials,
      auth,
      allowHosts,
      services,
      clock,
      logins: { logins: this.#logins, document: this.#name },
    })
    const requester = createRequester({
      what,
      allowHosts,
      headers,
      forwardHeaders,
      credentials: plan,
      timeout: parseDuration(source.timeout),
      retries,
      concurrency,
      maxResponse: parseSize(source.maxResponse),
      errorExcerpt: parseSize(source.errorExcerpt),
      services,
      clock,
      log,
    })
    const request: SendRequest = (operation, args, ctx) =>
      this.#record(callOf(ctx), { name: this.#name, tool: operation.id, failureOf }, () =>
        requester(operation, args, ctx),
      )
    if (this.#requester) this.#retire(this.#requester, source)
    this.#requester = requester
    this.#read = read
    this.#defined = source
    for (const { name, override = '', operation } of read.tools)
      this.#known.set(identityOf(operation), { name, override })
    const uncallable = read.tools.filter(({ operation }) => plan.reasonFor(operation) !== undefined)
    this.#left = uncallable
    if (uncallable.length > 0) {
      const reasons = [...new Set(uncallable.map(({ operation }) => plan.reasonFor(operation)))]
      log.info(
        { code: 'MH3407', document: this.#name, tools: uncallable.length, reasons: reasons.slice(0, MAX_REPORTED) },
        'left out operations without credentials',
      )
    }
    return read.tools
      .filter(tool => !uncallable.includes(tool))
      .flatMap(tool => {
        const override = source.overrides?.[tool.override ?? '']
        const resource = defineApiResource(this.#name, tool, override, source, request)
        return [defineApiTool(tool, override, source, request), ...(resource ? [resource] : [])]
      })
  }

  /** Closes the requester of the previous version after the time limit of its calls. */
  #retire(requester: Requester, { timeout }: Source): void {
    this.#retired.add(requester)
    const end = () => {
      this.#retired.delete(requester)
      void requester.close()
    }
    this.#host.clock.setTimeout(end, parseDuration(timeout)).unref()
  }

  /** Reports URLs to which the host would refuse all requests: `baseUrl` or servers. Called before the host serves. */
  async checkBaseUrl(): Promise<void> {
    const { baseUrl } = this.#source
    if (!this.#requester) return
    if (baseUrl !== undefined) {
      const reason = await this.#requester.reasonAgainst(baseUrl)
      if (reason !== undefined) this.#host.report(this.#error('MH3408', ['baseUrl'], reason))
      return
    }
    const servers = new Set(this.#read?.tools.map(({ operation }) => operation.baseUrl))
    for (const server of [...servers].slice(0, MAX_REPORTED)) {
      const reason = await this.#requester.reasonAgainst(server)
      const text = `all requests to this server of the document are blocked: ${reason}`
      if (reason !== undefined) this.#host.report(this.#error('MH3408', ['document'], text), 'warning')
    }
  }

  /** Throws a StartError if an operation loses `access` or a fixed argument of its override or, without a reload, rules for its name. */
  checkRestrictions({ tools, unknownKeys }: ReadDocument, reloaded?: Source): void {
    const { overrides = {} } = reloaded ?? this.#source
    for (const [identity, { name, override }] of this.#known) {
      const now = tools.find(one => identityOf(one.operation) === identity)
      if (now && now.override !== override && isRestricting(overrides[override])) {
        const key = defaultId(now.operation)
        const text = `${key} is now "${now.operation.id}" and would be served without this override; use the key "${key}"`
        throw this.#error('MH3403', ['overrides', override], text)
      }
      if (!now || reloaded || !this.#losesRules(name, now.name)) continue
      const what = `access rules for the tool "${name}" do not match its new name "${now.name}"`
      throw this.#error('MH3403', ['document'], `${what}; add rules for "${now.name}" and reload`)
    }
    const lost = unknownKeys.find(one => one.isRestricting)
    if (!lost) return
    const fix = 'correct it, or remove it if nothing else needs its `access` and fixed arguments'
    throw this.#error('MH3403', lost.at, `${lost.text}; ${fix}`)
  }

  /** True if a tool had fewer requirements under another name. */
  #losesRules(before: string, after: string): boolean {
    const { routes, services } = this.#host
    const needs = (key: string, route: Route) =>
      services.slot('access', route).needs?.({ item: { kind: 'tools', key, definition: {} } as CatalogItem }, route) ??
      []
    return (
      before !== after && routes.some(route => needs(before, route).some(one => !needs(after, route).includes(one)))
    )
  }

  /** Reads the document and serves it, unless it is already served. */
  async start(): Promise<void> {
    if (this.#read) return
    const read = await this.read()
    this.checkRestrictions(read)
    this.#logProblems(read)
    this.#served?.replace(this.#define(read))
  }

  /** Reads a document at a URL again. Keeps the previous version if that fails. */
  async refresh(): Promise<void> {
    try {
      const source = this.#source
      const read = await this.read(source)
      // A reload has changed the options and reads the document itself.
      if (source !== this.#source) return
      if (read.digest === this.#read?.digest && source === this.#defined) return
      this.checkRestrictions(read)
      this.#served?.replace(this.#define(read))
      this.#host.log.info(
        { code: 'MH3409', document: this.#name, tools: read.tools.length },
        'an OpenAPI document has changed',
      )
    } catch (err) {
      if (this.#closing.signal.aborted) return
      this.#host.log.warn(
        { code: 'MH3410', document: this.#name, err },
        'cannot read or use the current OpenAPI document: the previous version stays active',
      )
    }
  }

  /** Serves the changed options. */
  reload(source: Source, read: ReadDocument | undefined): void {
    const isSame = isDeepStrictEqual(source, this.#source)
    if (!isSame) this.#source = source
    if (!read) {
      // Again if the previous reload could not apply its options.
      if (this.#defined !== this.#source) void this.refresh()
      return
    }
    if (isSame && read.digest === this.#read?.digest) return
    this.#served?.replace(this.#define(read, source))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([this.#requester, ...this.#retired].map(requester => requester?.close()))
  }
}

/** Returns no definitions, and reports the error, if the credentials are unusable. */
function defineOrReport(report: InternalHost['report'], define: () => ApiDefinition[]): ApiDefinition[] {
  try {
    return define()
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    report(error)
    return []
  }
}

const isSimplified = ({ input, output }: ApiTool): boolean =>
  input.simplified.length > 0 || (output?.simplified.length ?? 0) > 0

const limitList = (texts: readonly string[]): string[] =>
  texts.length <= MAX_REPORTED
    ? [...texts]
    : [...texts.slice(0, MAX_REPORTED), `${texts.length - MAX_REPORTED} more; run \`mcp-host openapi\` to see all`]

/** Identifies an operation in all versions of a document: names of path parameters and servers can change. */
const identityOf = ({ method, path, baseUrl }: Operation): string =>
  `${method} ${baseUrl.replace(/^[^/]*\/\/[^/]*/, '')}${path}`.replace(/\/+/g, '/').replace(/\{[^}]*\}/g, '{}')
