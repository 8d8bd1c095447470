// Who can sign in at the authorization server for development: a part of its options.
import type { FilledOptions } from '../../core/index.ts'

/** Somebody who can sign in, with what their tokens say of them. */
export type DevUser = FilledOptions['dev-auth-server']['users'][number]
