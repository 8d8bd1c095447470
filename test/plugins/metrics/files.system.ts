// The metrics documentation page, dashboard and alert rules compared with the metrics of a running host.
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { defineTool } from '../../../core/index.ts'
import { ERROR_KINDS, META } from '../../../core/transport.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { makeAuthority, needsOpenssl, removeTlsFolders } from '../../support/certificates.ts'
import { readPage } from '../../support/doc-blocks.ts'
import { eventually } from '../../support/eventually.ts'
import { needsRedis, startRedis, stopRedis } from '../../support/redis-server.ts'
import { modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { startIssuer, stopIssuers } from '../../support/test-issuer.ts'
import { samplesIn, startMetered } from './scrape.ts'

const FOLDER = new URL('../../../docs/metrics/', import.meta.url)

interface Family {
  readonly type: string
  readonly labels: Set<string>
}

/** What the text has: each metric with its type, and the labels that its samples have. */
function familiesIn(text: string): Map<string, Family> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  const families = new Map(types.map(([, name = '', type = '']) => [name, { type, labels: new Set<string>() }]))
  for (const { name, labels } of samplesIn(text)) {
    const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''))
    for (const label of Object.keys(labels)) if (label !== 'le') family?.labels.add(label)
  }
  return families
}

/** What the tables of the page say. */
function documented(): Map<string, Family> {
  const rows = readPage('docs/plugins/metrics.md').matchAll(
    /^\| `(\w+)` \| (counter|gauge|histogram) \| ([^|]*?) ?\|/gm,
  )
  return new Map(
    [...rows].map(([, name = '', type = '', labels = '']) => {
      const named = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)
      return [name, { type, labels: new Set(named) }]
    }),
  )
}

async function everythingOn() {
  const [redis, issuer] = await Promise.all([startRedis(), startIssuer()])
  const metered = await startMetered(
    {
      toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
      routes: { '/mcp': { toolsets: 'all', search: {} } },
      redis: { url: redis.url },
      plugins: {
        'auth-jwt': { authority: issuer.url, audience: 'us' },
        'cluster-redis': {},
        'transport-sse': {},
        'access-log': { file: '/dev/null' },
        'event-loop': {},
        audit: { file: join(await makeFolder({}), 'audit.jsonl') },
        'rate-limit': { user: '1000/1h', store: 'redis' },
      },
    },
    { process: true },
  )
  const url = `${metered.url}/mcp`
  const headers = { Authorization: `Bearer ${issuer.token('us')}` }
  await modern(url, 'tools/call', { name: 'say' }, { headers })
  await modern(url, 'tools/call', { name: 'find_tools', arguments: { query: 'say' } }, { headers })
  await modern(url, 'tools/call', { name: 'no such' }, { headers: { Authorization: 'Bearer wrong' } })
  const session = await openSession(url, { revision: '2025-06-18', headers })
  await session.request('tools/call', { name: 'no such' })
  await session.end()
  await openSession(url, { revision: '2025-11-25', headers })
  await eventually('the session', async () => (await metered.scrape()).some(({ name }) => name === 'mcp_host_sessions'))
  return familiesIn(await (await fetch(metered.address)).text())
}

/** Of a host that speaks HTTPS, after a handshake that failed. */
async function securedToo() {
  const { cert, key } = makeAuthority().sign()
  const metered = await startMetered({
    toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
    routes: { '/mcp': { toolsets: 'all' } },
    http: { tls: { cert, key } },
  })
  await fetch(metered.url.replace('https:', 'http:')).catch(() => undefined)
  return familiesIn(await (await fetch(metered.address)).text())
}

/** Node 22.13 or later has files of SQLite; with an older one nobody can see their metrics. */
const HAS_SQLITE = isBuiltin('node:sqlite')
const isSeen = (metric: string) => HAS_SQLITE || !metric.startsWith('mcp_host_sqlite_')

/** Of a host whose sessions are in a file. */
async function inFileToo() {
  if (!HAS_SQLITE) return new Map<string, Family>()
  const metered = await startMetered({
    toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: { 'store-sqlite': { file: join(await makeFolder({}), 'sessions.db') } },
  })
  await openSession(`${metered.url}/mcp`, { revision: '2025-11-25' })
  return familiesIn(await (await fetch(metered.address)).text())
}

/** Of a host whose tools run as tasks, after one has ended. */
async function tasksToo() {
  const metered = await startMetered({
    toolsets: { all: [defineTool({ name: 'say', task: 'optional', handler: () => 'said' })] },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: { tasks: {} },
  })
  const meta = { [META.clientCapabilities]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
  await modern(`${metered.url}/mcp`, 'tools/call', { name: 'say' }, { meta })
  const ended = async () => (await metered.scrape()).some(({ name }) => name === 'mcp_host_tasks_ended_total')
  await eventually('the task has ended', ended)
  return familiesIn(await (await fetch(metered.address)).text())
}

/** Of a host with an upstream server, after a call. */
async function upstreamToo() {
  const say = defineTool({ name: 'say', handler: () => 'said' })
  const origin = await startHost({ toolsets: { all: [say] }, routes: { '/mcp': { toolsets: 'all' } } })
  const metered = await startMetered({
    toolsets: {},
    routes: { '/mcp': { toolsets: ['far'] } },
    plugins: { upstream: { servers: { far: { url: `${origin.url}/mcp` } } } },
  })
  await modern(`${metered.url}/mcp`, 'tools/call', { name: 'far_say' })
  return familiesIn(await (await fetch(metered.address)).text())
}

/** Labels that Prometheus itself adds. */
const ADDED = ['instance', 'job', 'le']

/** Of a query: the metrics that it names, and the labels. */
function namesIn(query: string) {
  const quoted = query.replace(/"(?:[^"\\]|\\.)*"/g, '""')
  const grouped = [...quoted.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
  const matched = [...quoted.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/(\w+)(?:=~|!~|!=|=)""/g)].map(([, label = '']) => label),
  )
  const bare = quoted.replace(/\bby \([^)]*\)|\{[^}]*\}/g, '')
  return {
    metrics: [...bare.matchAll(/\b(?:mcp|process|nodejs)_\w+/g)].map(([name]) => name),
    labels: [...grouped, ...matched],
    grouped,
  }
}

function expectKnown(query: string, families: ReadonlyMap<string, Family>) {
  const { metrics, labels } = namesIn(query)
  const found = metrics.map(name => {
    const base = name.replace(/_(bucket|sum|count)$/, '')
    const family = families.get(name) ?? (families.get(base)?.type === 'histogram' ? families.get(base) : undefined)
    expect(family, `${name}, in ${query}`).not.to.equal(undefined)
    return family
  })
  if (!/\bup\b/.test(query)) expect(found, query).not.to.have.length(0)
  const known = [...ADDED, ...found.flatMap(family => [...(family?.labels ?? [])])]
  expect(known, query).to.include.members(labels)
  for (const [open, close] of ['()', '{}', '[]']) {
    expect(query.split(open as string).length, query).to.equal(query.split(close as string).length)
  }
}

/** Values that metrics have in every host, beside those that the page names in the row of one. */
const CONSTANT: Readonly<Record<string, readonly string[]>> = {
  error_type: [...Object.keys(ERROR_KINDS), 'tool_error', ''],
  mcp_method_name: ['tools/call', 'subscriptions/listen'],
}
const OUTCOMES = ['ok', 'tool_error', 'input_required', 'error', 'refused', 'cancelled']

/** What a query looks for must be what a metric says: a misspelt value finds nothing, for ever. */
function expectKnownValues(query: string) {
  const rows = readPage('docs/plugins/metrics.md').split('\n')
  for (const [, metric = '', matchers = ''] of query.matchAll(/(\w+)\{([^}]*)\}/g)) {
    const name = metric.replace(/_(bucket|sum|count)$/, '')
    const row = rows.find(line => line.startsWith(`| \`${metric}\``) || line.startsWith(`| \`${name}\``)) ?? ''
    const named = [...row.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)
    for (const [, label = '', values = ''] of matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)) {
      if (values.includes('$') || label === 'job') continue
      const known = CONSTANT[label] ?? (name === 'mcp_server_operation_duration_seconds' ? OUTCOMES : named)
      expect(known, `${label} of ${metric}, in ${query}`).to.include.members(values.split('|'))
    }
  }
}

describe('Metrics documentation', () => {
  let real = new Map<string, Family>()
  const known = () => new Map([...real, ...documented()])

  before(async function () {
    needsRedis(this)
    needsOpenssl(this)
    const others = [await securedToo(), await inFileToo(), await tasksToo(), await upstreamToo()]
    real = new Map([...others.flatMap(families => [...families]), ...(await everythingOn())])
    // This label exists only after a garbage collection.
    real.get('nodejs_gc_duration_seconds')?.labels.add('kind')
  })
  after(async () => {
    await stopHosts()
    await removeFolders()
    removeTlsFolders()
    await Promise.all([stopRedis(), stopIssuers()])
  })

  it('lists every metric of the host with its type and labels', () => {
    const page = documented()
    const listed = new Map([...real].filter(([name]) => name.startsWith('mcp_')))
    const typesOf = (families: ReadonlyMap<string, Family>) =>
      [...families].flatMap(([name, { type }]) => (isSeen(name) ? `${name} ${type}` : []))
    expect(typesOf(page).sort()).to.deep.equal(typesOf(listed).sort())
    for (const [name, { labels }] of listed)
      expect([...(page.get(name)?.labels ?? [])], name).to.include.members([...labels])
    const unseen = [...page]
      .filter(([name]) => name.startsWith('mcp_') && isSeen(name))
      .flatMap(([name, { labels }]) =>
        [...labels].filter(label => !real.get(name)?.labels.has(label)).map(label => `${name} ${label}`),
      )
    // What this host was not asked for, or did not happen to it.
    expect(unseen).to.have.members([
      'mcp_server_operation_duration_seconds gen_ai_prompt_name',
      'mcp_server_operation_duration_seconds mcp_resource_uri',
      'mcp_host_client_questions_total client',
      'mcp_host_client_questions_total version',
      'mcp_host_client_questions_total protocol_version',
      'mcp_host_client_questions_total kind',
      'mcp_host_connections_closed_total reason',
      'mcp_host_dpop_proofs_total outcome',
      'mcp_host_dpop_proofs_total plugin',
      'mcp_host_isolated_calls_ended_total over',
      'mcp_host_isolated_calls_ended_total tool',
      'mcp_host_tool_calls state',
      'mcp_host_tool_calls tool',
      'mcp_host_tool_calls_refused_total tool',
      'mcp_host_rate_limited_total limit',
      'mcp_host_upstream_active_calls state',
      'mcp_host_upstream_active_calls upstream',
      'mcp_host_upstream_reconnections_total upstream',
      'mcp_host_rate_limit_uncounted_total on_failure',
    ])
  })

  it('dashboard uses only existing metrics and labels', () => {
    const dashboard = JSON.parse(readFileSync(new URL('grafana-dashboard.json', FOLDER), 'utf8'))
    const panels: Array<{
      id: number
      type: string
      title: string
      targets?: Array<{ expr: string; legendFormat: string }>
    }> = dashboard.panels
    const shown = panels.flatMap(({ targets = [] }) => targets)
    expect(shown.length).to.be.above(25)
    for (const { expr, legendFormat } of shown) {
      expectKnown(expr, known())
      expectKnownValues(expr)
      const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
      expect(namesIn(expr).grouped, expr).to.include.members(legend)
    }
    for (const { query } of dashboard.templating.list) {
      const [, name, label] = /^label_values\((\w+), (\w+)\)$/.exec(query.query ?? '') ?? []
      if (name) expectKnown(`sum by (${label}) (${name})`, known())
    }
    expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length)
    // What an operator is told to look at is there.
    const named = new Set(
      shown.flatMap(({ expr }) => namesIn(expr).metrics.map(name => name.replace(/_(bucket|sum|count)$/, ''))),
    )
    const hosts = [...real.keys()].filter(name => name.startsWith('mcp_'))
    expect(hosts.filter(name => !named.has(name))).to.deep.equal([])
  })

  it('alert rules use only existing metrics, and each describes the problem', () => {
    const { groups } = parse(readFileSync(new URL('alerts.yml', FOLDER), 'utf8'))
    const rules: Array<{ alert: string; expr: string; for: string; labels: object; annotations: object }> =
      groups.flatMap(({ rules }: { rules: unknown[] }) => rules)
    expect(rules.length).to.be.above(10)
    expect(new Set(rules.map(({ alert }) => alert)).size).to.equal(rules.length)
    for (const rule of rules) {
      expect(rule).to.have.all.keys('alert', 'expr', 'for', 'labels', 'annotations')
      expect(rule.for).to.match(/^\d+[smh]$/)
      expectKnown(rule.expr, known())
      expectKnownValues(rule.expr)
      const told = [...JSON.stringify(rule.annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label)
      expect(
        [...namesIn(rule.expr).grouped, ...(/\bup\b/.test(rule.expr) ? ADDED : [])],
        rule.alert,
      ).to.include.members(told)
    }
  })
})
