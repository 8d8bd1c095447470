// The names of what nodes ask a session's client. A name says which node asked, signed, so that the answer that comes to
// another node finds its way there, and nothing else that a client sends does.
import { createHmac, timingSafeEqual } from 'node:crypto'

export interface QuestionIds {
  /** Names for the questions that this node asks in a session, by its digest; each call begins another series. */
  series(session: string): () => string
  /** The node that asked this in the session; undefined for what no node of this config has asked there. */
  askerOf(session: string, id: unknown): string | undefined
}

/** Base64url, of 16 bytes. */
const MAC_LENGTH = 22
const FORM = /^(ask-([0-9a-z]{1,64})-[0-9a-z]{1,8}-[1-9][0-9]{0,9})-([\w-]{22})$/

const macOf = (key: Buffer, session: string, text: string) =>
  createHmac('sha256', key).update(`${session} ${text}`).digest('base64url').slice(0, MAC_LENGTH)

/** Signed with the first of these keys, read with any of them. `node`: this one. */
export function createQuestionIds(keys: readonly Buffer[], node: string): QuestionIds {
  const [signing] = keys
  if (!signing) throw new Error('no key to sign the names of questions with')
  return {
    series(session) {
      const prefix = `ask-${node}-${Math.random().toString(36).slice(2, 8)}`
      let asked = 0
      return () => {
        const text = `${prefix}-${++asked}`
        return `${text}-${macOf(signing, session, text)}`
      }
    },
    askerOf(session, id) {
      const [, text = '', asker, mac = ''] = (typeof id === 'string' && FORM.exec(id)) || []
      if (asker === undefined) return undefined
      // Texts are compared, not bytes: each name is written in one way.
      const given = Buffer.from(mac)
      return keys.some(key => timingSafeEqual(Buffer.from(macOf(key, session, text)), given)) ? asker : undefined
    },
  }
}
