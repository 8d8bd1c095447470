import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { accepted, callTool, questionsIn } from '../fixtures/asking-client.ts'
import { bundledFile } from '../support/compiled.ts'

interface Node {
  readonly url: string
  readonly pid: number
}

const children: ChildProcess[] = []

async function forkHost(secret: string | undefined): Promise<Node> {
  const env = { ...process.env, ...(secret !== undefined && { ASKING_SECRET: secret }) }
  const child = fork(bundledFile('test/fixtures/asking-host.ts'), {
    env,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  children.push(child)
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the host ended with ${code}`)))
  ended.catch(() => undefined)
  const [node] = await Promise.race([once(child, 'message'), ended])
  return node as Node
}

async function endHosts() {
  const running = children.splice(0).filter(({ exitCode }) => exitCode === null)
  const ended = running.map(child => once(child, 'exit'))
  for (const child of running) child.disconnect()
  expect((await Promise.all(ended)).map(([code]) => code)).to.deep.equal(running.map(() => 0))
}

describe('stateless elicitation (input_required), each retry handled by another process', () => {
  const SECRET = 'shared by all nodes of this deployment'
  let nodes: Node[]

  before(async () => {
    nodes = await Promise.all([SECRET, SECRET, SECRET, SECRET].map(forkHost))
  })
  after(endHosts)

  it('passes three elicitation results to the handler in order', async () => {
    const args = { topic: 'bees' }
    let retry = {}
    const asked: string[] = []
    for (const [index, { url }] of nodes.slice(0, 3).entries()) {
      const { message } = await callTool(url, 'three_questions', retry, args)
      const key = `elicit-${index + 1}`
      asked.push(questionsIn(message)[key] ?? `no question ${key}`)
      retry = { state: message.result.requestState, answers: { [key]: accepted(`answer ${index + 1}`) } }
    }
    expect(asked).to.deep.equal(['One, about bees?', 'Two, after answer 1?', 'Three, after answer 2?'])
    const [, , , last] = nodes
    const { message } = await callTool(last?.url ?? '', 'three_questions', retry, args)
    const answers = ['answer 1', 'answer 2', 'answer 3']
    expect(message.result.structuredContent).to.deep.equal({ answers, pid: last?.pid })
    expect(new Set([process.pid, ...nodes.map(({ pid }) => pid)])).to.have.property('size', 5)
  })
})

describe('processes with different secrets', () => {
  after(endHosts)

  it('reject requestState sealed by another process and accept their own', async () => {
    const [one, other] = await Promise.all([forkHost(undefined), forkHost(undefined)])
    const state = (await callTool(one.url, 'form')).message.result.requestState
    const retry = { state, answers: { 'elicit-1': accepted('a') } }
    const refused = await callTool(other.url, 'form', retry)
    expect([refused.status, refused.message.error.code]).to.deep.equal([200, -32602])
    expect((await callTool(one.url, 'form', retry)).message.result.content[0].text).to.equal('a')
  })
})
