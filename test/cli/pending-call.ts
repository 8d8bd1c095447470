// A tool that waits for a line on stdin of its process, and a running call of it.
import { expect } from 'chai'
import { modernRequest, parseEvents, type RpcMessage } from '../support/rpc.ts'

/** Notifies that it runs, ends at a line on stdin or its end, prints on stdout when it is cancelled. */
export const WAIT = `defineTool({
  name: 'wait',
  async handler(_, { progress, signal }) {
    signal.addEventListener('abort', () => console.log('cancelled: ' + signal.reason.message))
    progress(1)
    await new Promise(resolve => process.stdin.once('data', resolve).once('end', resolve))
    return 'finished'
  },
})`

interface RunningCall {
  /** The response, once the stream has ended; rejects when it broke off. */
  rest(): Promise<RpcMessage>
}

/** Calls the waiting tool; resolves once its handler runs. */
export async function callWait(url: string): Promise<RunningCall> {
  const { headers, body } = modernRequest('tools/call', { name: 'wait' }, { meta: { progressToken: 'p' } })
  const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  const response = await fetch(url, {
    method: 'POST',
    body,
    headers: { ...base, ...(headers as Record<string, string>) },
  })
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader()
  const { value = '' } = await reader.read()
  expect(parseEvents(value)[0].method).to.equal('notifications/progress')
  return {
    async rest() {
      let text = ''
      for (;;) {
        const { done, value = '' } = await reader.read()
        if (done) return parseEvents(text)[0]
        text += value
      }
    },
  }
}
