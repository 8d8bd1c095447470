// A document at a URL in `check`, `lock` and `start --frozen`: its tools are part of the lock, and a changed document is not served.
import { expect } from 'chai'
import { runCli, startCli, stopAll } from '../../cli/in-process.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { modern } from '../../support/rpc.ts'
import { startApi } from './api.ts'

after(stopAll)
after(removeFolders)

const documentWith = (operationId: string) =>
  JSON.stringify({ openapi: '3.1.0', info: {}, paths: { '/orders': { get: { operationId, responses: {} } } } })

async function folderFor({ url, host }: { readonly url: string; readonly host: string }) {
  const source = { document: `${url}/orders.json`, allowHosts: [host] }
  const plugins = { 'transport-streamable': {}, openapi: { documents: { orders: source }, refresh: '1h' } }
  const server = { name: 'locked', version: '1.0.0' }
  const routes = { '/': { toolsets: 'orders' } }
  return makeFolder({ 'mcp.config.json': JSON.stringify({ server, http: { port: 0 }, routes, plugins }) })
}

describe('A document at a URL', () => {
  it('is compared with the lock before the host serves it', async () => {
    let operationId = 'listOrders'
    await using api = await startApi((_, res) => void res.end(documentWith(operationId)))
    const folder = await folderFor(api)
    const { warnings } = JSON.parse((await runCli(['check', '--format', 'json'], folder)).stdout)
    expect(warnings.map(({ code }: { readonly code: string }) => code)).not.to.include('MH3401')
    expect((await runCli(['lock'], folder)).stdout).to.include('1 tool')

    const running = startCli(['start', '--frozen'], folder)
    const { message } = await modern(await running.listening(), 'tools/list')
    expect(message.result.tools.map(({ name }: { readonly name: string }) => name)).to.deep.equal(['listOrders'])
    operationId = 'removeOrders'
    running.child.kill('SIGHUP')
    const [line] = await running.logged(/^.*"msg":"Reload failed.*$/m)
    expect(line).to.include('removeOrders')
    running.child.kill('SIGTERM')
    await running.ended

    const refused = await runCli(['start', '--frozen'], folder)
    expect(refused.code).to.equal(2)
    expect(refused.stderr).to.include('tool "removeOrders"')
  })

  it('that cannot be read is a warning of `check`, and stops a frozen start', async () => {
    const api = await startApi((_, res) => void res.end(documentWith('listOrders')))
    const folder = await folderFor(api)
    expect((await runCli(['lock'], folder)).code).to.equal(0)
    await api[Symbol.asyncDispose]()
    const checked = await runCli(['check', '--format', 'json'], folder)
    expect(checked.code).to.equal(0)
    const { warnings } = JSON.parse(checked.stdout)
    expect(warnings.map(({ code }: { readonly code: string }) => code)).to.include('MH3401')
    const started = await runCli(['start', '--frozen'], folder)
    expect(started.code).to.equal(2)
    expect(started.stderr).to.include('MH3401')
  })
})
