// Gets the answer of a browser login back: by the loopback redirect where the browser runs on this machine, else by the
// callback address, which the person copies out of their browser.
import { AuthError } from '../../client/errors.ts'
import { createLoopbackRedirect } from '../../client/node/index.ts'
import type { LoopbackHost } from '../../client/node/loopback.ts'
import type { AuthorizationRedirectDelegate } from '../../client/options.ts'
import type { CommandContext } from '../context.ts'
import { step } from './narrate.ts'
import { ask } from './terminal.ts'

export interface ReceiverOptions {
  readonly host?: string | undefined
  /** 0: any free one. */
  readonly port?: number | undefined
  /** Default `/callback`. */
  readonly path?: string | undefined
  /** Of an earlier registration, which holds for this redirect URI alone: used again where it is free. */
  readonly before?: string | undefined
  /** False: only the URL is shown. */
  readonly browser: boolean
}

export interface Receiver {
  readonly redirectUri: string
  readonly delegate: AuthorizationRedirectDelegate
  close(): Promise<void>
}

/** Of an earlier registration at the same host. */
function earlierPort({ before }: ReceiverOptions, host: string): number | undefined {
  const earlier = before === undefined || !URL.canParse(before) ? undefined : new URL(before)
  return earlier?.hostname.replace(/^\[|\]$/g, '') === host ? Number(earlier.port) : undefined
}

const isAnswer = (text: string): boolean => {
  const parameters = URL.canParse(text) ? new URL(text).searchParams : undefined
  return parameters !== undefined && (parameters.has('code') || parameters.has('error'))
}

/** Undefined where nothing can be pasted: the input has ended. */
async function askForAddress(context: CommandContext, signal: AbortSignal): Promise<string | undefined> {
  for (;;) {
    const text = (await ask(context, 'Paste that address here: ', { signal }))?.trim()
    if (text === undefined || isAnswer(text)) return text
    if (text !== '')
      context.say('This is no callback address: it has neither a code nor an error in it. Paste the whole of it.')
  }
}

export async function createReceiver(context: CommandContext, options: ReceiverOptions): Promise<Receiver> {
  const { say, stderr, openBrowser } = context
  const host = (options.host ?? '127.0.0.1') as LoopbackHost
  /** Called for a login whose URL the person opens themselves. */
  const shown = new Map<string, () => void>()

  function showUrl(url: URL): void {
    say('Open this address in a browser, and log in:')
    stderr.write(`\n  ${url.href}\n\n`)
    say('In the end the browser goes to an address of this machine. If it cannot show that page,')
    say('copy the address from its address bar.')
    shown.get(url.href)?.()
  }

  async function show(url: URL): Promise<void> {
    if (!options.browser) return showUrl(url)
    step(context, 'browser', 'opening; Ctrl-C ends the login')
    try {
      await openBrowser(url)
    } catch (error) {
      say(AuthError.is(error) ? (error.message.split(';', 1)[0] ?? '') : String(error))
      showUrl(url)
    }
  }

  const redirect = await createLoopbackRedirect({
    host,
    port: options.port,
    path: options.path,
    preferredPort: earlierPort(options, host),
    openBrowser: show,
  })

  return {
    redirectUri: redirect.redirectUri,
    async delegate(url, redirectUri, { signal }) {
      const over = new AbortController()
      const both = AbortSignal.any([signal, over.signal])
      const opened = new Promise<void>(resolve => shown.set(url.href, resolve))
      const never = new Promise<never>(() => {})
      const pasted = opened.then(() => askForAddress(context, both)).then(text => text ?? never)
      const received = redirect.delegate(url, redirectUri, { signal: both }).catch(error => {
        if (options.browser || both.aborted) throw error
        // Somebody else has the port; the address can be pasted all the same.
        showUrl(url)
        return never
      })
      try {
        return await Promise.race([received, pasted])
      } finally {
        shown.delete(url.href)
        over.abort(new AuthError('the login is over', { code: 'aborted' }))
      }
    },
    close: () => redirect.close(),
  }
}
