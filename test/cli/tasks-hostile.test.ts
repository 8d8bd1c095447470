// Tests `mcp-host tasks` with a malicious server: forged rows, terminal escapes and endless responses.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { tableLines } from '../../cli/render.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { type Ended, runCli, stopAll } from './in-process.ts'

const TASK = { taskId: 'tsk_1', tool: 'backup', status: 'completed', createdAt: '2026-11-23T00:00:00Z' }
const LIES = 'ok\u001b[2J\u202e\ntsk_2  refund_all  completed'
const result = (value: unknown) => JSON.stringify({ jsonrpc: '2.0', id: 1, result: value })
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

describe('mcp-host tasks with a malicious server', () => {
  let folder: string
  let url: string
  let body = ''
  let ends = true
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method } = JSON.parse(text) as { id?: number; method: string }
    if (id === undefined) return void response.writeHead(202).end()
    response.setHeader('Content-Type', 'application/json')
    const answer = (more: object) => void response.end(JSON.stringify({ jsonrpc: '2.0', id, ...more }))
    const serverInfo = { name: 'hostile', version: '1' }
    if (method === 'server/discover') answer({ error: { code: -32_601, message: 'Method not found' } })
    else if (method === 'initialize')
      answer({ result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo } })
    else if (ends) response.end(body.replace('"id":1', `"id":${id}`))
    else response.write(' ')
  })
  before(async () => {
    folder = await makeFolder({})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await stopAll()
    await removeFolders()
  })

  const run = (answer: string, ...more: string[]): Promise<Ended> => {
    body = answer
    ends = true
    return runCli(['tasks', url, '--header', 'X-User: ann', ...more], folder, { MCP_HOST_HOME: folder })
  }

  it('prints one row per task, without forged lines, and without escapes if there is no terminal', async () => {
    const list = await run(result({ tasks: [{ ...TASK, statusMessage: LIES }] }))
    expect(list.stdout.trimEnd().split('\n')).to.have.lengthOf(2)
    const followed = await run(
      result({ ...TASK, statusMessage: LIES, result: { a: '\u202e\u009b' } }),
      '--follow',
      'tsk_1',
    )
    expect(followed.stdout).not.to.match(/^tsk_2/m)
    const json = await run(result({ ...TASK, statusMessage: LIES }), '--follow', 'tsk_1', '--json')
    expect(JSON.parse(json.stdout).statusMessage).to.equal(LIES)
    const error = { code: '\u001b[31m1\nmcp-host: your login is over', message: LIES }
    const failed = await run(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))
    expect(failed.stderr.trimEnd().split('\n')).to.have.lengthOf(1)
    const printed = [list, followed, json, failed].map(({ stdout, stderr }) => stdout + stderr)
    for (const text of printed) expect(text.replaceAll('\n', '')).not.to.match(/[\p{Cc}\p{Cf}]/u)
  })

  it('reports invalid tasks and deep JSON; lists at most 1,000 tasks', async () => {
    const answers = [result({ tasks: [null] }), `{"jsonrpc":"2.0","id":1,"result":{"result":${deep(50_000)}}}`]
    const says = [/a task that is not an object/, /nested too deeply/]
    for (const [index, answer] of answers.entries()) {
      const { code, stderr } = await run(answer)
      expect([code, stderr]).to.satisfy(([, text]: [number, string]) => says[index]?.test(text), stderr)
      expect(code).to.equal(1)
    }
    const many = await run(result({ tasks: Array.from({ length: 2_000 }, () => TASK) }))
    expect(many.stdout.trimEnd().split('\n')).to.have.lengthOf(1_001)
  })

  it('sends no header to another origin after a redirect: tasks, list and call', async () => {
    let foreign = 0
    const elsewhere = createServer((_, response) => {
      foreign++
      response.end('{}')
    })
    const here = createServer((request, response) => {
      request.resume()
      const { port } = elsewhere.address() as AddressInfo
      response.writeHead(307, { Location: `http://127.0.0.1:${port}/` }).end()
    })
    for (const one of [elsewhere, here]) {
      one.listen(0, '127.0.0.1')
      await once(one, 'listening')
    }
    const address = `http://127.0.0.1:${(here.address() as AddressInfo).port}/`
    for (const words of [
      ['tasks', address],
      ['list', address],
      ['call', address, 'a'],
    ]) {
      const args = [...words, '--header', 'X-Api-Key: key-of-ann', '--header', 'Authorization: Bearer token-of-ann']
      const { code, stderr } = await runCli(args, folder, { MCP_HOST_HOME: folder })
      expect([code, foreign], stderr).to.deep.equal([1, 0])
      expect(stderr).to.match(/redirect/i)
    }
    for (const one of [elsewhere, here]) one.close()
  })

  it('ends with a timeout if a response never ends', async () => {
    ends = false
    const args = ['tasks', url, '--header', 'X-User: ann', '--follow', 'a', '--timeout', '0.5']
    const { code, stderr } = await runCli(args, folder, { MCP_HOST_HOME: folder })
    expect([code, stderr]).to.satisfy(([, text]: [number, string]) => /MH3205/.test(text), stderr)
  })

  it('truncates a cell of millions of characters at once', () => {
    const [line = ''] = tableLines([''], [['x'.repeat(30_000_000)]], 80)
    expect(line).to.have.lengthOf(80)
  })
})
