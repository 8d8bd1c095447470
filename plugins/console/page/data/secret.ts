// The secret of the login, which tabs of this origin share. Unlike cookies, it is not sent to other ports.
import { signal } from '@preact/signals'

const NAME = 'secret'
/** Milliseconds in which another tab can reply. */
const WAIT = 300

interface Message {
  /** Absent in a request. */
  readonly secret?: string
  readonly isNew?: boolean
}

const channel = new BroadcastChannel('console')
const send = (message: Message) => channel.postMessage(message)

/** Increases with each secret of another tab. */
export const received = signal(0)

export const readSecret = (): string | undefined => sessionStorage.getItem(NAME) ?? undefined
export const forgetSecret = (): void => sessionStorage.removeItem(NAME)

channel.addEventListener('message', ({ data: { secret, isNew } }: MessageEvent<Message>) => {
  const own = readSecret()
  if (secret === undefined) {
    if (own !== undefined) send({ secret: own })
  } else if (isNew || own === undefined) {
    sessionStorage.setItem(NAME, secret)
    received.value++
  }
})

/** Stores the secret of a new login in all tabs, because the login replaced their cookie. */
export function shareSecret(secret: string): void {
  sessionStorage.setItem(NAME, secret)
  send({ secret, isNew: true })
}

/** Returns the secret of this tab, or else of another tab. */
export async function findSecret(): Promise<string | undefined> {
  if (readSecret() === undefined) {
    send({})
    await new Promise(resolve => {
      channel.addEventListener('message', resolve, { once: true })
      setTimeout(resolve, WAIT)
    })
  }
  return readSecret()
}
