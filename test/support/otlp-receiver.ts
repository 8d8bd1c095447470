// An OTLP receiver (HTTP, JSON) on a free port. It keeps request bodies and spans.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  /** 0 unset, 2 error. */
  readonly status: { readonly code: number; readonly message?: string }
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

export interface OtlpReceiver {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: ReceivedSpan[]
  /** The bodies of all requests. */
  readonly bodies: string[]
  close(): void
}

interface RawSpan extends Omit<ReceivedSpan, 'attributes' | 'links'> {
  readonly attributes?: readonly { readonly key: string; readonly value: object }[]
  readonly links?: ReceivedSpan['links']
}

interface Body {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly RawSpan[] }[] }[]
}

const readable = ({ attributes = [], links = [], ...span }: RawSpan): ReceivedSpan => ({
  ...span,
  links,
  attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
})

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const server = createServer(async (req, res) => {
    const body = await text(req)
    bodies.push(body)
    const { resourceSpans } = JSON.parse(body) as Body
    for (const { scopeSpans } of resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans.map(readable))
    }
    res.setHeader('Content-Type', 'application/json').end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    bodies,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
