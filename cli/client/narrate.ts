// Tells a person what a login does, one line a step.
import type { AuthEvent } from '../../client/events.ts'
import type { CommandContext } from '../context.ts'
import { flagOf } from './flag-words.ts'

const scopesOf = (scope: string | undefined) => (scope ? `, scopes ${scope}` : '')

/** A step of a login, in two columns. */
export const step = ({ say }: Pick<CommandContext, 'say'>, label: string, text: string): void =>
  say(`${label.padEnd(22)}${text}`)

/** What a person may want to know of an event; undefined: nothing. */
function describe(event: AuthEvent): readonly [label: string, text: string] | undefined {
  switch (event.type) {
    case 'resource-metadata-found':
      return ['protected by', event.resource === undefined ? 'no resource metadata (2025-03-26)' : event.url]
    case 'authorization-server-found':
      return ['authorization server', event.issuer]
    case 'several-authorization-servers':
      return ['note', `several authorization servers are listed; the first is used: ${event.listed.join(', ')}`]
    case 'registered':
      return ['registered as', event.clientId]
    case 'registration-dropped':
      return ['registration', `${event.clientId} is not used any more: ${event.why}`]
    case 'authorization-started':
      return ['asking you', `to log in at ${event.issuer}${scopesOf(event.scope)}`]
    case 'refresh-failed':
      return ['renewal', `failed: ${event.code}`]
    case 'step-up':
      return ['more scopes', `the server asks for ${event.scope}`]
    case 'tolerated':
      return ['note', `${event.what} (${flagOf(event.option)})`]
    case 'token-obtained':
      return ['token', `by ${event.grant}${scopesOf(event.scope)}`]
    default:
      return undefined
  }
}

/** For the option `onEvent`. */
export const createNarrator =
  (context: CommandContext) =>
  (event: AuthEvent): void => {
    const told = describe(event)
    if (told) step(context, ...told)
  }
