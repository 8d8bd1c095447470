// Tests ids of server requests (elicitation, sampling), which identify the requesting node within a cluster.
import { expect } from 'chai'
import { createRequestIdSeries } from '../../core/sessions/pending-requests.ts'

const [key, older, foreign] = [1, 2, 3].map(byte => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
const SESSION = 'digest-of-a-session'

/** What an attacker makes of a name. */
function forgeries(id: string): unknown[] {
  const [, node, salt, number, ...rest] = id.split('-')
  const mac = rest.join('-')
  const form = (...parts: readonly unknown[]) => ['ask', ...parts].join('-')
  const spoiled = [...id].flatMap((char, at) => {
    const other = char === 'a' ? 'b' : 'a'
    return [`${id.slice(0, at)}${other}${id.slice(at + 1)}`, `${id.slice(0, at)}${id.slice(at + 1)}`]
  })
  const moved = [
    form('other', salt, number, mac),
    form(node, 'salt', number, mac),
    form(node, salt, Number(number) + 1, mac),
    form(node, salt, `0${number}`, mac),
    form(node, salt, number, mac.toUpperCase()),
    form(node, salt, number),
    form(node, 'aaaaaa', 1),
  ]
  // The last character has four bits that say nothing: another one with the same bytes is another name.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const same = [...alphabet].map(char => `${id.slice(0, -1)}${char}`).filter(other => other !== id)
  const odd = [`${id}=`, ` ${id}`, `${id}\n`, id.repeat(2), '', 1, Number.NaN, undefined, `ask-${'a'.repeat(100_000)}`]
  return [...spoiled, ...moved, ...same, ...odd].filter(forged => forged !== id)
}

describe('Server request ids', () => {
  const here = createRequestIdSeries([key, older], 'here')
  const there = createRequestIdSeries([key], 'there')

  it('identify the requesting node, within their session only', () => {
    const next = here.series(SESSION)
    const ids = Array.from({ length: 20 }, next)
    expect(new Set(ids)).to.have.property('size', 20)
    for (const id of ids) {
      expect(there.senderOf(SESSION, id)).to.equal('here')
      expect(there.senderOf('another-session', id)).to.equal(undefined)
    }
  })

  it('verify with any configured secret and with no other', () => {
    const id = createRequestIdSeries([older], 'here').series(SESSION)()
    expect(here.senderOf(SESSION, id)).to.equal('here')
    expect(there.senderOf(SESSION, id)).to.equal(undefined)
    expect(createRequestIdSeries([foreign], 'here').senderOf(SESSION, id)).to.equal(undefined)
  })

  it('have one valid encoding and cannot be forged', () => {
    let tried = 0
    for (const id of [here.series(SESSION)(), here.series(SESSION)()]) {
      for (const forged of forgeries(id)) {
        tried++
        expect(there.senderOf(SESSION, forged), String(forged).slice(0, 80)).to.equal(undefined)
      }
    }
    expect(tried).to.be.greaterThan(250)
  })
})
