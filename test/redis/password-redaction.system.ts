// Tests that passwords quoted in errors of Redis or Sentinel are removed from logs and errors.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect } from 'chai'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { eventually } from '../support/eventually.ts'
import { startRedisHost } from '../support/redis-host.ts'
import { stopHosts } from '../support/start-host.ts'

const AT_SENTINEL = 'sentinel-horse-7'
const AT_REDIS = 'redis-horse-8'

const closing: Array<() => void> = []

/** The words of each command that is whole in this text. */
const wordsOf = (text: string): string[] => [...text.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map(([, word = '']) => word)

/** RESP3, for a client that asks for it. */
const HELLO = '%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n'

/** Answers each command with an error that quotes all that the connection said; `greets`: but for HELLO. */
async function startQuoting(greets: boolean): Promise<{ url: string; said(): string }> {
  const all: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const own: string[] = []
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', data => {
      for (const command of data.toString().split(/(?=^\*\d+\r\n)/m)) {
        const words = wordsOf(command)
        own.push(...words)
        all.push(...words)
        const isGreeted = greets && words[0]?.toUpperCase() === 'HELLO'
        socket.write(isGreeted ? HELLO : `-LOADING it was sent ${own.join(' ')}\r\n`)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, said: () => all.join(' ') }
}

describe('password redaction in Redis errors', () => {
  afterEach(async () => {
    await stopHosts()
    for (const close of closing.splice(0)) close()
  })

  it('removes the Sentinel password from errors of any Sentinel', async () => {
    const servers = [await startQuoting(false), await startQuoting(false)]
    const addresses = servers.map(({ url }) => url)
    const sentinel = { name: 'mymaster', addresses, username: 'asker', password: AT_SENTINEL }
    const own = { sentinel, username: 'mcp', password: AT_REDIS, commandTimeout: '5s' as const }
    const { log } = await startRedisHost(own)
    const quoted = await eventually('a line of what they said', () =>
      log.map(({ reason }) => String(reason ?? '')).find(text => /it was sent .*it was sent/.test(text)),
    )
    expect(servers.every(({ said }) => said().includes(AT_SENTINEL))).to.equal(true)
    expect(quoted).to.include('asker ***')
    expect(JSON.stringify(log)).to.not.include(AT_SENTINEL).and.not.include(AT_REDIS)
  })

  for (const [whose, password] of [
    ['as a string', AT_REDIS],
    ['from a function', () => AT_REDIS],
  ] as const) {
    it(`removes the Redis password (${whose}), also from errors of later commands`, async () => {
      for (const greets of [false, true]) {
        const server = await startQuoting(greets)
        const { connection, log } = await startRedisHost({
          url: server.url,
          username: 'mcp',
          password,
          commandTimeout: '2s',
        })
        await eventually('a line of what it said', () => log.some(({ reason }) => /it was sent/.test(String(reason))))
        expect(server.said()).to.include(AT_REDIS)
        const error = await rejectionOf(connection.run(client => client.get(connection.key('n'))))
        expect(`${JSON.stringify(log)} ${error} ${(error as Error).cause}`).to.not.include(AT_REDIS)
      }
    })
  }
})
