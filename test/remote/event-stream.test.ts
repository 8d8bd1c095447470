// Server-Sent Events as the proxy reads them: the same however they are cut into chunks, at a cost that grows with their size.
import { expect } from 'chai'
import { readEvents, type StreamEvent } from '../../remote/http/event-stream.ts'

async function eventsOf(chunks: Iterable<Uint8Array>, most = 1_000): Promise<StreamEvent[]> {
  const left = chunks[Symbol.iterator]()
  const body = new ReadableStream<Uint8Array>({
    pull(to) {
      const { value, done } = left.next()
      if (done) to.close()
      else to.enqueue(value)
    },
  })
  const events: StreamEvent[] = []
  for await (const event of readEvents(body, most)) events.push(event)
  return events
}
const bytes = (text: string) => new TextEncoder().encode(text)

describe('readEvents', () => {
  it('gives the same events wherever the stream is cut, with every kind of line end', async () => {
    const lines = [
      '﻿: hello',
      'id: 1',
      '',
      'event: endpoint',
      'data: a중',
      'data:b',
      'retry: 20',
      '',
      'data',
      '',
      'data: cut',
    ]
    for (const end of ['\n', '\r', '\r\n']) {
      const all = bytes(lines.join(end))
      for (let size = 1; size <= all.length; size++) {
        const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
          all.subarray(at * size, (at + 1) * size),
        )
        expect(await eventsOf(chunks), `${JSON.stringify(end)} in chunks of ${size}`).to.deep.equal([
          { event: 'message', data: '', id: '1', retry: undefined },
          { event: 'endpoint', data: 'a중\nb', id: undefined, retry: 20 },
          { event: 'message', data: '', id: undefined, retry: undefined },
        ])
      }
    }
  })

  it('takes a retry of an hour at most: a longer timer would fire at once', async () => {
    const retries = ['20', '3600001', '999999999', '9999999999', '1e3']
    const events = await eventsOf(retries.map(retry => bytes(`retry: ${retry}\ndata: a\n\n`)))
    expect(events.map(({ retry }) => retry)).to.deep.equal([20, 3_600_000, 3_600_000, undefined, undefined])
  })

  it('rejects an event past the bound, in one line or in many', async () => {
    for (const piece of ['data: '.padEnd(600, 'x'), 'data\n']) {
      const failure = await eventsOf(Array.from({ length: 400 }, () => bytes(piece))).then(
        () => undefined,
        error => error,
      )
      expect(String(failure)).to.include('larger than 1000 characters')
    }
  })

  it('looks at each chunk once: one line of 3,000 chunks takes about as long as as many lines', async () => {
    const piece = 'x'.repeat(1_023)
    const took = async (chunk: string) => {
      const before = process.cpuUsage()
      const [event] = await eventsOf(
        (function* () {
          yield bytes('data: ')
          for (let sent = 0; sent < 3_000; sent++) yield bytes(chunk)
          yield bytes('\n\n')
        })(),
        64 * 1024 * 1024,
      )
      const { user, system } = process.cpuUsage(before)
      return { event, cpu: (user + system) / 1_000 }
    }
    const many = await took(`${piece}\n`)
    const one = await took(`${piece}x`)
    expect(one.event?.data).to.have.length(3_000 * 1_024)
    expect(one.cpu).to.be.lessThan(10 * many.cpu + 500)
  })
})
