// A client that knows tasks, over real HTTP: calls tools, asks for tasks, answers, cancels and listens.
import { expect } from 'chai'
import { META } from '../../../../core/transport.ts'
import { eventually } from '../../../support/eventually.ts'
import { modern, modernRequest, type RpcAnswer, type RpcMessage, type RpcOptions } from '../../../support/rpc.ts'
import { nextMessage, postOpen } from '../../../support/session-client.ts'

export const TASKS = 'io.modelcontextprotocol/tasks'
const MISSING = { requiredCapabilities: { extensions: { [TASKS]: {} } } }

const ENDS = ['completed', 'failed', 'cancelled']

const ASKED = { elicitation: {}, sampling: {}, roots: {} }

/** As this user (`identify-by-header.ts`), or as nobody; `more`: capabilities beside tasks, `own`: headers of every request. */
export function taskClient(url: string, user?: string, more: object = ASKED, own: object = {}) {
  const meta = { [META.clientCapabilities]: { ...more, extensions: { [TASKS]: {} } } }
  const auth = user === undefined ? {} : { 'X-User': user }
  const options = (headers: object = {}): RpcOptions => ({ meta, headers: { ...auth, ...own, ...headers } })
  const send = (method: string, params: Record<string, unknown>, headers: object = {}) =>
    modern(url, method, params, options(headers))
  const about = (method: string, taskId: string, params: object = {}) =>
    send(method, { taskId, ...params }, { 'Mcp-Name': taskId })

  const call = (name: string, args: object = {}, more: object = {}): Promise<RpcAnswer> =>
    send('tools/call', { name, arguments: args, ...more })

  /** Calls a tool that becomes a task, and gives its id. */
  async function begin(name: string, args: object = {}): Promise<string> {
    const { message } = await call(name, args)
    expect(message.result, JSON.stringify(message)).to.include({ resultType: 'task', status: 'working' })
    return message.result.taskId
  }

  const get = async (taskId: string): Promise<RpcMessage> => (await about('tasks/get', taskId)).message.result

  /** What a task is once its status is one of these; default: once it is over. */
  const until = (taskId: string, ...statuses: string[]): Promise<RpcMessage> => {
    const wanted = statuses.length === 0 ? ENDS : statuses
    return eventually(
      `the task is ${wanted.join(' or ')}`,
      () => get(taskId),
      task => wanted.includes(task?.status),
    )
  }

  return {
    call,
    begin,
    get,
    until,
    send,
    about,
    update: (taskId: string, inputResponses: object) => about('tasks/update', taskId, { inputResponses }),
    /** The ids of all pages. */
    async listed(): Promise<string[]> {
      const ids: string[] = []
      for (let cursor: string | undefined; ; ) {
        const { result } = (await send('io.mcp-host/tasks/list', cursor === undefined ? {} : { cursor })).message
        ids.push(...result.tasks.map(({ taskId }: RpcMessage) => taskId))
        cursor = result.nextCursor
        if (cursor === undefined) return ids
      }
    },
    cancel: (taskId: string) => about('tasks/cancel', taskId),
    /** Opens a subscription: gives the acknowledgement, and what is told next. */
    async listen(taskIds: unknown) {
      const request = modernRequest('subscriptions/listen', { notifications: { taskIds } }, { ...options(), id: 'sub' })
      const stream = await postOpen(url, request.body, request.headers)
      const first = await nextMessage(stream)
      return { acknowledged: first.params.notifications, next: () => nextMessage(stream), drop: () => stream.drop() }
    },
  }
}

export type TaskClient = ReturnType<typeof taskClient>

/** The status and code of a refusal. */
export const refusal = ({ status, message }: RpcAnswer) => [status, message.error?.code]

/** That a client must declare the extension, and is told so. */
export function expectMissing({ status, message }: RpcAnswer) {
  expect([status, message.error?.code], JSON.stringify(message)).to.deep.equal([400, -32021])
  expect(message.error.data).to.deep.equal(MISSING)
}
