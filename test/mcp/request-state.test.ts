// Tests signed request state of multi-round calls and the keys derived from secrets.
import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { HostError } from '../../core/http/errors.ts'
import { createSecrets } from '../../core/kernel/secrets.ts'
import { MAX_STATE_LENGTH, openState, STATE_LIFETIME, sealState } from '../../core/mcp/calls/request-state.ts'

const [key = Buffer.alloc(0)] = createSecrets(['one secret that is long enough to use']).keys('request-state')
const [otherKey = Buffer.alloc(0)] = createSecrets(['another secret that is long enough']).keys('request-state')
const state = { asked: { 'elicit-1': { question: 'q', answer: { action: 'accept' } }, 'elicit-2': { question: 'r' } } }

function refusal(open: () => unknown): string {
  try {
    open()
  } catch (error) {
    if (HostError.is(error)) return `${error.kind}: ${error.detail}`
    throw error
  }
  return 'opened'
}

describe('Request state', () => {
  it('opens on any node that shares the secret', () => {
    const [sameSecretElsewhere = Buffer.alloc(0)] = createSecrets(['one secret that is long enough to use']).keys(
      'request-state',
    )
    expect(openState(sealState(state, 'b', key), 'b', [sameSecretElsewhere])).to.deep.equal(state)
  })

  it('opens with an older secret that is still configured', () => {
    expect(openState(sealState(state, 'b', otherKey), 'b', [key, otherKey])).to.deep.equal(state)
    expect(refusal(() => openState(sealState(state, 'b', otherKey), 'b', [key]))).to.include('invalidParams')
  })

  it('is rejected for another request, user or definition', () => {
    expect(refusal(() => openState(sealState(state, 'b', key), 'c', [key]))).to.include('was altered, or belongs')
  })

  it('is rejected after any modification', () => {
    const text = sealState(state, 'b', key)
    let refused = 0
    for (let at = 0; at < text.length; at++) {
      const other = text[at] === 'A' ? 'B' : 'A'
      const altered = text.slice(0, at) + other + text.slice(at + 1)
      if (refusal(() => openState(altered, 'b', [key])) !== 'opened') refused++
    }
    expect(refused).to.equal(text.length)
    for (const odd of [`${text}-TAMPERED`, `${text}.`, text.slice(0, -1), 'v1.', '', 'v2.AAAA', 5, null, {}]) {
      expect(
        refusal(() => openState(odd, 'b', [key])),
        String(odd),
      ).to.include('invalidParams')
    }
  })

  it('expires after ten minutes with a specific error', () => {
    const text = sealState(state, 'b', key, 1_000)
    expect(openState(text, 'b', [key], 1_000 + STATE_LIFETIME)).to.deep.equal(state)
    expect(refusal(() => openState(text, 'b', [key], 1_001 + STATE_LIFETIME))).to.include('has expired')
  })

  it('is limited to 64 KiB when sealed and when received', () => {
    const large = { asked: { a: { question: 'q', answer: 'x'.repeat(MAX_STATE_LENGTH) } } }
    expect(refusal(() => sealState(large, 'b', key))).to.include('stateTooLarge')
    expect(refusal(() => openState('v1.'.padEnd(MAX_STATE_LENGTH + 1, 'A'), 'b', [key]))).to.include(
      'was not issued by this host',
    )
  })

  it('is encrypted', () => {
    const text = sealState({ asked: { a: { question: 'q', answer: 'the user said this' } } }, 'b', key)
    expect(Buffer.from(text.slice(3), 'base64url').toString('latin1')).not.to.include('user said')
    expect(sealState(state, 'b', key)).not.to.equal(sealState(state, 'b', key))
  })
})

describe('Secrets', () => {
  it('derive a stable, separate key for each purpose', () => {
    const secrets = createSecrets(['one secret that is long enough to use', undefined, ''])
    expect(secrets.keys('a')).to.have.length(1)
    expect(secrets.keys('a')[0]?.equals(secrets.keys('b')[0] ?? Buffer.alloc(0))).to.equal(false)
    expect(secrets.generated).to.equal(false)
  })

  it('are generated per process if none is configured', () => {
    const [first, second] = [createSecrets([undefined]), createSecrets()]
    expect(first.generated).to.equal(true)
    expect(first.keys('a')[0]?.equals(second.keys('a')[0] ?? Buffer.alloc(0))).to.equal(false)
  })

  it('stop startup if too short, with a command to generate one', () => {
    expect(() => createSecrets(['short'])).to.throw(/secrets\[0\].*32 characters/)
    const pem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
    expect(() => createSecrets(['x'.repeat(32), pem])).to.throw(/secrets\[1\].*PEM/)
  })
})
