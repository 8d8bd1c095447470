// The connections of one host to PostgreSQL. Calls get 503 while the server does not respond.
import type { Client, Pool } from 'pg'
import { errorText, type Logger, type PluginFinding, StartError } from '../../core/plugin.ts'
import type { Outcome, Query, ReadAnswers, Step, Store } from '../../core/store.ts'
import { storeUnavailable } from '../../core/transport.ts'
import {
  type KeySpaceClaim,
  MIN_LIFETIME,
  readFingerprints,
  SHARE_SECRET,
  writeClaim,
} from '../families/stores/index.ts'
import { SCHEMA_VERSION, schemaOf } from './schema.ts'

/** Time limit of a call, milliseconds. PostgreSQL never applies a call later. */
export const TIMEOUT = 5_000
export const MAX_CONNECTIONS = 10
/** Milliseconds between attempts while the server does not respond, and between deletions of expired rows. */
const INTERVAL = { down: 1_000, up: 5_000 }
/** Maximum rows that one deletion removes from each table. */
const EXPIRED = 1_000

/** SQLSTATE codes of permanent refusals: wrong credentials, unknown database, missing privileges. */
const PERMANENT = /^(?:28|3D|42501)/
/** SQLSTATE codes of errors that a retry cannot solve. */
const FAULTS = /^(?:21|22|23|42|54|P0)/
const FIX = 'check the URL, the password, and the privileges of the role (docs/plugins/store-postgres.md)'

const NOT_INSTALLED: ReadonlySet<unknown> = new Set(['3F000', '42P01'])

export interface PostgresSettings {
  readonly url: string
  readonly schema: string
  readonly log: Logger
  /** Announced while the host runs. A host without a shared secret is refused. */
  readonly claim?: KeySpaceClaim
}

/** The partition and the sorted set of the claims of running nodes. */
const CLAIMS = ['nodes', 'secrets'] as const
const RESPONDS_NOT = 'PostgreSQL does not respond'

const codeOf = (thrown: unknown) => String((thrown as { readonly code?: unknown })?.code ?? '')

const ESCAPES = /\\(?:u000([01])|ud[89a-f]..|.)/g
const ESCAPED = /\\(?:u0001([01])|.)/g

/**
 * Escapes characters that PostgreSQL cannot store: NUL becomes `\u00010`, \u0001 becomes `\u00011`, and lone surrogates
 * are replaced.
 */
const encode = (value: unknown): string =>
  JSON.stringify(value).replace(ESCAPES, (whole: string, bit?: string) =>
    bit === undefined ? (whole.startsWith('\\ud') ? '\\ufffd' : whole) : `\\u0001${bit}`,
  )

const decode = (text: string): unknown =>
  JSON.parse(text.replace(ESCAPED, (whole: string, bit?: string) => (bit === undefined ? whole : `\\u000${bit}`)))

const encodeArgument = (value: unknown) =>
  typeof value === 'string' ? (JSON.parse(encode(value)) as string) : typeof value === 'object' ? encode(value) : value

export class Postgres {
  readonly schema: string
  /** Why it is not up, for the health page. */
  problem = RESPONDS_NOT
  readonly #settings: PostgresSettings
  readonly #returned = new Set<() => void>()
  #pool: Promise<Pool> | undefined
  #installed: Promise<void> | undefined
  /** Upper bound of the difference between PostgreSQL's clock and the monotonic clock. */
  #offset: number | undefined
  #timer: NodeJS.Timeout | undefined
  #isUp: boolean | undefined
  #downSince = 0
  readonly #loggedProblems = new Set<string>()
  #upSince = 0
  #isClosed = false

  constructor(settings: PostgresSettings) {
    this.schema = settings.schema
    this.#settings = settings
  }

  get isUp(): boolean {
    return this.#isUp === true
  }

  onReturn(listener: () => void): void {
    this.#returned.add(listener)
  }

  #options() {
    return {
      connectionString: this.#settings.url,
      application_name: 'mcp-host',
      keepAlive: true,
      connectionTimeoutMillis: TIMEOUT,
      query_timeout: TIMEOUT,
      options: `-c default_transaction_isolation=read\\ committed -c statement_timeout=${TIMEOUT}`,
    }
  }

  async #open(): Promise<Pool> {
    const { default: pg } = await import('pg')
    const pool = new pg.Pool({ ...this.#options(), max: MAX_CONNECTIONS, idleTimeoutMillis: 60_000 })
    pool.on('error', error => this.#down(error))
    return pool
  }

  /** Opens a connection in addition to the pool. */
  async connect(): Promise<Client> {
    await this.#install()
    const { default: pg } = await import('pg')
    const client = new pg.Client(this.#options())
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  /** Connects for `mcp-host doctor`, without writing anything. */
  async examine(): Promise<PluginFinding> {
    const { default: pg } = await import('pg')
    const client = new pg.Client(this.#options())
    client.on('error', () => undefined)
    const connected = client.connect().then(
      () => ({ level: 'ok', text: 'responds' }) as const,
      error => ({ level: 'wrong', text: errorText(error), fix: FIX }) as const,
    )
    return { check: 'PostgreSQL', ...(await connected.finally(() => client.end())) }
  }

  /** Connects. Throws a StartError if the server refuses permanently; otherwise retries until it responds. */
  async start(): Promise<void> {
    try {
      await this.#install()
    } catch (cause) {
      if (cause instanceof StartError) throw cause
      if (PERMANENT.test(codeOf(cause))) {
        throw new StartError('MH3501', `PostgreSQL refuses this host: ${errorText(cause)}; ${FIX}`, { cause })
      }
      this.#down(cause)
    }
    this.#schedule()
  }

  #schedule() {
    if (this.#isClosed) return
    this.#timer = setTimeout(
      () => void this.#maintain().then(() => this.#schedule()),
      this.#isUp ? INTERVAL.up : INTERVAL.down,
    ).unref()
  }

  async #maintain() {
    try {
      // Checks the schema again, and renews the claim.
      do this.#installed = undefined
      while (await this.call('upkeep', EXPIRED))
    } catch (err) {
      this.#settings.log.debug({ err }, 'expired rows were not deleted')
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const pool = await this.#pool
    const { claim } = this.#settings
    const [partition, sortedSet] = CLAIMS
    if (claim && pool && this.#isUp) {
      const steps = [{ sortedSet, remove: [writeClaim(claim)] }]
      await this.#query(pool, 'transact', Number.MAX_SAFE_INTEGER, partition, steps, true).catch(() => undefined)
    }
    await pool?.end()
  }

  #install(): Promise<void> {
    this.#installed ??= this.#checkSchema().catch(error => {
      this.#installed = undefined
      throw error
    })
    return this.#installed
  }

  async #checkSchema() {
    this.#pool ??= this.#open()
    const pool = await this.#pool
    const version = async () => (await pool.query(`SELECT version FROM "${this.schema}".format`)).rows[0]?.version
    const found = await version().catch(async error => {
      if (!NOT_INSTALLED.has(codeOf(error))) throw error
      await pool.query(schemaOf(this.schema))
      return version()
    })
    if (found === SCHEMA_VERSION) {
      await this.#claim(pool)
      return this.#up()
    }
    const why = `the schema ${this.schema} has version ${found}, but this version of mcp-host requires ${SCHEMA_VERSION}`
    throw new StartError('MH3502', `${why}; use the matching version of mcp-host, or set another \`schema\``)
  }

  /** Announces the secrets of this node. Throws if a running node shares none of them. */
  async #claim(pool: Pool) {
    const { claim } = this.#settings
    if (!claim) return
    const [partition, sortedSet] = CLAIMS
    for (let isDone = false; !isDone; ) {
      const queries = [{ sortedSet, from: { now: 0 }, limit: 10_000 }]
      const { now, answers } = (await this.#query(pool, 'read', partition, queries)) as {
        readonly now: number
        readonly answers: readonly [{ readonly members: ReadonlyArray<{ readonly member: string }> }]
      }
      const has = answers[0].members.map(({ member }) => member)
      const isShared = (other: string) => readFingerprints(other).some(one => claim.fingerprints.includes(one))
      if (!has.every(isShared)) {
        const why = `the schema ${this.schema} is in use by a host with other \`secrets\``
        const fix = `set a different \`schema\` ${SHARE_SECRET}`
        throw new StartError('MH3501', `PostgreSQL refuses this host: ${why}; ${fix}`)
      }
      // Fails if another node has announced its secrets since.
      const put = { [writeClaim(claim)]: { now: MIN_LIFETIME } }
      const step = { sortedSet, below: { now: 0 }, has, most: has.length, put, ttl: MIN_LIFETIME }
      const outcome = await this.#query(pool, 'transact', now + TIMEOUT, partition, [step], true)
      isDone = (outcome as Outcome).done
    }
  }

  /** Calls a function of the schema. Rejects with `unavailable` if the server does not respond. */
  call(name: string, ...args: readonly unknown[]): Promise<unknown> {
    return this.callOn(undefined, name, ...args)
  }

  /** Default of `on`: the pool. */
  async callOn(on: Pick<Pool, 'query'> | undefined, name: string, ...args: readonly unknown[]): Promise<unknown> {
    try {
      await this.#install()
    } catch (error) {
      this.#down(error)
      throw storeUnavailable({ cause: error })
    }
    const startedAt = performance.now()
    const answer = await this.#query(on ?? ((await this.#pool) as Pool), name, ...args).catch(error => {
      if (FAULTS.test(codeOf(error)) && !PERMANENT.test(codeOf(error))) throw error
      // A call on a connection from before the outage does not report another outage.
      if (startedAt >= this.#upSince) this.#down(error)
      throw storeUnavailable({ cause: error })
    })
    this.#up()
    return answer
  }

  async #query(on: Pick<Pool, 'query'>, name: string, ...args: readonly unknown[]): Promise<unknown> {
    const parameters = args.map((_, index) => `$${index + 1}`)
    const text = `SELECT "${this.schema}".${name}(${parameters.join(', ')}) AS answer`
    const { rows } = await on.query({ name, text, values: args.map(encodeArgument) })
    const { answer } = rows[0]
    return typeof answer === 'string' ? this.#read(answer) : answer
  }

  #read(text: string): unknown {
    const answer = decode(text) as { readonly now?: number }
    if (answer.now !== undefined) this.#offset = answer.now - performance.now()
    return answer
  }

  /** Calls a function that changes nothing after the time in its first argument. */
  async callInTime<Answer>(name: string, ...args: readonly unknown[]): Promise<Answer> {
    const end = performance.now() + TIMEOUT
    for (let left = TIMEOUT; left > 0; left = end - performance.now()) {
      this.#offset ??= Number(await this.call('clock')) - performance.now()
      const answer = await this.call(name, Math.floor(performance.now() + this.#offset + left), ...args)
      if (!(answer as { readonly late?: boolean }).late) return answer as Answer
    }
    throw storeUnavailable({ cause: new Error(`no response within ${TIMEOUT} ms`) })
  }

  #up() {
    if (this.#isUp || this.#isClosed) return
    const { log } = this.#settings
    const wasDown = this.#isUp === false
    this.#isUp = true
    this.#upSince = performance.now()
    this.#loggedProblems.clear()
    if (!wasDown) log.info({ code: 'MH3503' }, 'connected to PostgreSQL')
    else {
      const seconds = Math.round((performance.now() - this.#downSince) / 100) / 10
      log.info({ code: 'MH3503', seconds }, 'PostgreSQL responds again')
      for (const listener of this.#returned) listener()
    }
  }

  #down(cause: unknown) {
    if (this.#isClosed) return
    if (this.#isUp !== false) this.#downSince = performance.now()
    this.#isUp = false
    this.#installed = undefined
    const code = codeOf(cause)
    const isRefused = cause instanceof StartError || PERMANENT.test(code)
    const kind = code.startsWith('28') ? `authentication (${code})` : code
    this.problem = isRefused ? `PostgreSQL refuses this host: ${kind}` : RESPONDS_NOT
    if (this.#loggedProblems.has(this.problem)) return
    this.#loggedProblems.add(this.problem)
    const reason = errorText(cause)
    const fix = cause instanceof StartError ? undefined : { fix: FIX }
    if (!isRefused) this.#settings.log.warn({ code: 'MH3504', reason }, 'PostgreSQL does not respond: retrying')
    else this.#settings.log.warn({ code: 'MH3504', reason, ...fix }, 'PostgreSQL refuses this host: retrying')
  }
}

/** Each operation is one function call: one round trip and one transaction. */
export const createPostgresStore = (postgres: Postgres): Store => ({
  shared: true,
  transact: (partition: string, steps: readonly Step[], durability) =>
    postgres.callInTime<Outcome>('transact', partition, steps, durability === 'relaxed'),
  async read<const Queries extends readonly Query[]>(partition: string, queries: Queries) {
    const { answers } = (await postgres.call('read', partition, queries)) as { readonly answers: readonly unknown[] }
    return answers.map(answer => answer ?? undefined) as unknown as ReadAnswers<Queries>
  },
  onReturn: listener => postgres.onReturn(listener),
})
