// Tests the order of request processing steps at every kind of endpoint, over HTTP.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import { type EndpointKind, ORDER, type Step, stepsOf } from '../../core/kernel/order.ts'
import type { HostMiddleware } from '../../core/plugin.ts'
import { hello, plugin } from '../fixtures/plugins.ts'
import { requestHead, sendRaw } from '../support/raw-http.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

/** Refuses what asks to be refused at this step. */
const refuse =
  (step: Step): HostMiddleware =>
  (ctx, next) => {
    if (ctx.get('X-Refuse').split(' ').includes(step)) throw new HostError('forbidden', { detail: step })
    return next()
  }

const endpoint = {
  cors: refuse('cors'),
  body: 'json' as const,
  methods: {
    POST(ctx: { body: unknown }) {
      ctx.body = 'served'
    },
  },
}

/** The final statuses that the outermost middleware saw. */
const seen: number[] = []

const probe = plugin(host => {
  host.use(async (ctx, next) => {
    await next()
    seen.push(ctx.status)
  })
  host.use(refuse('use'))
  for (const step of ['onRequest', 'authenticate', 'authorize'] as const) host[step](refuse(step))
  const [route] = host.routes
  if (!route) throw new Error('there is a route')
  host.endpoint('/page', () => endpoint)
  host.endpoint('/open', () => ({ ...endpoint, public: true }))
  host.endpoint('/fixed/:category', endpoint, { route })
})

const PATHS: Record<EndpointKind, (category: string) => string> = {
  R: category => `/r/${category}/page`,
  P: category => `/r/${category}/open`,
  F: category => `/fixed/${category}`,
  N: () => '/nowhere',
}
const KINDS = Object.keys(PATHS) as EndpointKind[]
const STEPS = ORDER.map(([step]) => step)

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: [hello] },
    routes: { '/r/:category': { toolsets: ':category' } },
    plugins: { probe },
  }))
})
after(stopHosts)

/** What a request to this kind of endpoint is answered, which breaks the rules of these steps. */
async function ask(kind: EndpointKind, broken: readonly Step[]) {
  const breaks = (step: Step) => broken.includes(step)
  const head = requestHead(url, {
    method: breaks('verb') ? 'PUT' : 'POST',
    path: PATHS[kind](breaks('address') ? 'nothing' : 'all'),
    headers: {
      'X-Refuse': broken.join(' '),
      'Content-Type': breaks('body') ? 'image/png' : 'application/json',
      'Content-Length': breaks('length') ? '99999999' : '2',
      Origin: breaks('hostOrigin') ? 'https://evil.example' : undefined,
    },
  })
  return sendRaw(url, head, breaks('length') ? '' : '{}')
}

const BY_STATUS: Record<number, Step> = { 404: 'address', 405: 'verb', 413: 'length', 415: 'body' }

/** The step that answered; undefined: the endpoint did. */
async function answeredBy(kind: EndpointKind, broken: readonly Step[]): Promise<string | undefined> {
  const { status, message } = await ask(kind, broken)
  if (status === 200) return undefined
  const [, own] = /^Forbidden: (\w+)$/.exec(message.error.message) ?? []
  return own ?? (status === 403 ? 'hostOrigin' : BY_STATUS[status])
}

describe('Request processing order', () => {
  for (const kind of KINDS) {
    const acting = stepsOf(kind)
    for (const step of STEPS.filter(name => name !== 'writeErrors')) {
      const acts = acting.includes(step)
      it(`${step} ${acts ? 'acts' : 'does not act'} at ${kind}`, async () => {
        // Where nothing is served, that is the answer, unless somebody refuses before.
        const otherwise = kind === 'N' ? 'address' : undefined
        expect(await answeredBy(kind, [step])).to.equal(acts ? step : otherwise)
      })
    }

    it(`responds at ${kind} with the first refusing step`, async () => {
      const refusing = acting.filter(step => step !== 'writeErrors')
      for (const [index, first] of refusing.entries()) {
        for (const second of refusing.slice(index + 1)) {
          expect(await answeredBy(kind, [first, second]), `${first}, ${second}`).to.equal(first)
        }
      }
    })

    it(`at ${kind}, writeErrors formats errors of any step and use sees the status`, async () => {
      for (const step of acting) {
        if (step === 'writeErrors') continue
        seen.length = 0
        const { status, headers, message } = await ask(kind, [step])
        expect([headers.get('content-type'), message.jsonrpc], step).to.deep.equal([
          'application/json; charset=utf-8',
          '2.0',
        ])
        expect(seen, step).to.deep.equal([status])
      }
    })
  }

  it('matches docs/architecture.md', () => {
    const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^ {2}(\w+) +([RPFN ]{7}) /gm)].map(([, step, kinds = '']) => [step, kinds])
    expect(rows).to.deep.equal(ORDER)
  })
})
