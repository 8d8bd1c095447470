// Tests the proxies of examples/deploy (nginx, Caddy) while one of two nodes is killed and restarted under load.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { bundledFile } from '../support/compiled.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { modernRequest } from '../support/rpc.ts'
import {
  ownFolder,
  type RunningProxy,
  removeFolders,
  startCaddy,
  startListening,
  startMcpConf,
} from './support/processes.ts'

/** Of each proxy. */
const CLIENTS = 3
/** How the node ends, each time. */
const ENDS: readonly NodeJS.Signals[] = ['SIGKILL', 'SIGTERM']
/** Calls at each proxy that are answered, somehow, before it is started again. */
const WHILE_DOWN = 75

interface Run {
  readonly port: number
  readonly id: string
  /** Of its header. */
  readonly who: string
}

interface Tally {
  /** Calls that were answered with their own result. */
  readonly served: Set<string>
  readonly wrong: string[]
  answers: number
}

const started = new Set<RunningProxy>()
let file: string

before(() => {
  file = join(ownFolder(), 'runs')
  writeFileSync(file, '')
})
after(async () => {
  await Promise.all([...started].map(each => each.stop()))
  removeFolders()
})

async function startNode(port: number): Promise<RunningProxy> {
  const command = [process.execPath, bundledFile('test/deploy/support/whose-node.ts'), String(port), file]
  const node = await startListening(command, port)
  started.add(node)
  return node
}

function readRuns(): Run[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map(line => {
    const [port, id = '', who = ''] = line.split(' ')
    return { port: Number(port), id, who }
  })
}

/** One call, whose id begins with the name of its client, as its header has it. Undefined: the connection broke. */
async function callOnce(url: string, who: string, id: string): Promise<{ status: number; text: string } | undefined> {
  const { headers, body } = modernRequest('tools/call', { name: 'whose', arguments: { id } }, { id })
  const sent = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
  try {
    const init = { method: 'POST', headers: { ...(sent as Record<string, string>), 'X-Who': who }, body }
    const answer = await fetch(url, init)
    return { status: answer.status, text: await answer.text() }
  } catch {
    return undefined
  }
}

/** The clients of a proxy call, each one call after the other, until `stop`. */
function startCalling(proxy: string, url: string) {
  const tally: Tally = { served: new Set(), wrong: [], answers: 0 }
  let stopped = false
  const all = Array.from({ length: CLIENTS }, async (_, index) => {
    const who = `${proxy}${index}`
    for (let count = 1; !stopped; count++) {
      const id = `${who}-${count}`
      const { status, text } = (await callOnce(url, who, id)) ?? { status: 0, text: '' }
      tally.answers += 1
      if (status !== 200) continue
      // A response that takes long is a stream.
      const { id: answered, result } = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text)
      if (answered === id && result?.content[0].text === id) tally.served.add(id)
      else tally.wrong.push(`${id} got ${text}`)
    }
  })
  async function stop() {
    stopped = true
    await Promise.all(all)
  }
  return { tally, stop }
}

/** Ends the first node and starts it again, again and again, while all clients call. */
async function callWhileOneEnds(
  urls: Readonly<Record<string, string>>,
  nodes: readonly [RunningProxy, RunningProxy],
): Promise<Tally[]> {
  const calling = Object.entries(urls).map(([proxy, url]) => startCalling(proxy, url))
  const tallies = calling.map(({ tally }) => tally)
  const serves = async (port: number, after: number) =>
    eventually('the node serves', () => {
      const runs = readRuns().slice(after)
      return Object.keys(urls).every(proxy => runs.some(run => run.port === port && run.who.startsWith(proxy)))
    })
  try {
    let [first] = nodes
    await serves(first.port, 0)
    for (const end of ENDS) {
      const before = tallies.map(({ answers }) => answers)
      await first.stop(end)
      started.delete(first)
      await eventually('calls were answered meanwhile', () =>
        tallies.every(({ answers }, index) => answers - (before[index] ?? 0) >= WHILE_DOWN),
      )
      const runs = readRuns().length
      first = await startNode(first.port)
      await serves(first.port, runs)
    }
  } finally {
    await Promise.all(calling.map(({ stop }) => stop()))
  }
  return tallies
}

/** Compares the results of the clients with the calls that the nodes recorded. */
function expectOwnResults(proxy: string, { served, wrong }: Tally): void {
  const runs = readRuns().filter(({ who }) => who.startsWith(proxy))
  const ids = runs.map(({ id }) => id)
  const mixed = runs.filter(({ id, who }) => id.split('-')[0] !== who)
  const doubled = ids.length - new Set(ids).size
  expect({ mixed, wrong, doubled }).to.deep.equal({ mixed: [], wrong: [], doubled: 0 })
  const ran = new Set(ids)
  expect([...served].filter(id => !ran.has(id))).to.deep.equal([])
}

const PROXIES = [
  ['nginx/mcp.conf', 'nginx', startMcpConf],
  ['caddy/Caddyfile', 'caddy', startCaddy],
] as const

describe('Proxy of examples/deploy during a node restart', () => {
  let tallies: Tally[]

  before(async function () {
    for (const [, program] of PROXIES) needsProgram(this, program, `apt-get install ${program}`)
    const ports = [await freePort(), await freePort()] as const
    const nodes = await Promise.all([startNode(ports[0]), startNode(ports[1])])
    const urls: Record<string, string> = {}
    for (const [, program, start] of PROXIES) {
      const port = await freePort()
      started.add(
        await start(
          ports.map(each => `127.0.0.1:${each}`),
          port,
        ),
      )
      urls[program] = `http://127.0.0.1:${port}/mcp`
    }
    tallies = await callWhileOneEnds(urls, nodes)
  })

  for (const [index, [name, program]] of PROXIES.entries()) {
    it(`returns each client its own results and runs no call twice: ${name}`, () => {
      expectOwnResults(program, tallies[index] as Tally)
    })
  }
})
