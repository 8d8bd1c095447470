// Tests CLI commands with servers that echo secrets or return invalid tokens: no secret is printed, also with
// `--verbose`.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { Fault, RecordedRequest } from '../client/support/fake-servers.ts'
import { expectNoSecret } from '../client/support/leaks.ts'
import type { Ended } from './in-process.ts'
import { type Desk, startDesk, stopDesks } from './login-setup.ts'

const planted: string[] = []
const plant = () => {
  const secret = `planted${randomBytes(12).toString('hex')}`
  planted.push(secret)
  return secret
}

/** Made anew for each request. */
const each = (status: number, body: () => unknown): Fault => ({
  status,
  get body() {
    return body()
  },
})

/** Answers with all that it was sent, as pages for developers do. */
const playback = (requests: readonly RecordedRequest[]) => {
  const { headers, body } = requests.at(-1) ?? { headers: {}, body: '' }
  return `<pre>${JSON.stringify(headers)}\n${body}\nwhat now?</pre>`
}

describe('R-97: the CLI and servers that plant secrets', () => {
  after(stopDesks)

  const outputs: Array<{ readonly what: string; readonly ended: Ended; readonly desk: Desk }> = []
  async function keep(what: string, desk: Desk, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended> {
    const ended = await desk.run([...args, '--verbose'], env)
    outputs.push({ what, ended, desk })
    return ended
  }

  it('login: a token response that is no JSON object, and a rejected registration with its secrets', async () => {
    const desks = await Promise.all([startDesk(), startDesk(), startDesk()])
    const [form, refused, text] = desks
    form.fake.as.failNext(
      '/token',
      each(200, () => `access_token=${plant()}&refresh_token=${plant()}`),
      9,
    )
    const registration = () => ({ client_secret: plant(), registration_access_token: plant() })
    refused.fake.as.failNext('/register', each(400, registration), 9)
    text.fake.as.failNext(
      '/token',
      each(500, () => JSON.stringify(plant())),
      9,
    )
    const ends = await Promise.all([
      keep('a form for a token', form, ['login', form.url]),
      keep('a refused registration', refused, ['login', refused.url]),
      keep('a text for a token', text, ['login', text.url]),
    ])
    expect(ends.map(({ code }) => code)).to.deep.equal([1, 1, 1])
    expect(ends[0]?.stderr).to.match(/HTTP 200 \(no content type, \d+ bytes\)/)
    expect(ends[1]?.stderr).to.match(/HTTP 400 \(application\/json, \d+ bytes\)/)
    expect(planted.length).to.be.greaterThan(4)
  })

  it('list, call and doctor: a page that echoes the request', async () => {
    const desk = await startDesk()
    expect((await desk.run(['login', desk.url])).code).to.equal(0)
    const { rs } = desk.fake
    rs.failNext(
      '/mcp',
      each(500, () => playback(rs.to('/mcp'))),
      500,
    )
    const ends = [
      await keep('list', desk, ['list', desk.url]),
      await keep('call', desk, ['call', desk.url, 'add', 'a=1']),
    ]
    expect(ends.map(({ code }) => code)).to.deep.equal([1, 1])
    expect(ends[0]?.stderr).to.include('HTTP 500')
    await keep('doctor', desk, ['doctor', desk.url, '--token', plant()])
    await keep('status', desk, ['status'])
  })

  it('print none of them', () => {
    const secrets = [...planted, ...outputs.flatMap(({ desk }) => desk.fake.secrets())]
    const texts = outputs.map(({ ended }) => ended.stdout + ended.stderr)
    expectNoSecret(texts, [...new Set(secrets)])
  })
})
