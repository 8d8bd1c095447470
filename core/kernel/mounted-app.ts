// A Koa app, or middleware, that stands at a path of the host: the last step there. Koa knows the host's own app alone, so
// whose the request is is noted here, for the app's listeners (core/kernel/write-errors.ts).
import type Koa from 'koa'
import koaMount from 'koa-mount'
import { refuseAddress } from '../http/refuse-address.ts'
import type { HostContext, HostMiddleware, MountedApp } from './endpoint.ts'

const apps = new WeakMap<object, Koa>()

/** The app that answers a request; undefined where middleware does. */
export const mountedAppOf = (ctx: object): Koa | undefined => apps.get(ctx)

export const isKoaApp = (value: unknown): value is Koa =>
  typeof value === 'object' && value !== null && 'middleware' in value && Array.isArray(value.middleware)

/** What Koa keeps where somebody chose a status. Not documented, the same since Koa 2. */
interface KoaResponse {
  readonly _explicitStatus?: boolean
}

const isUnanswered = ({ body, respond, response, res }: HostContext): boolean =>
  !(response as KoaResponse)._explicitStatus && (body ?? null) === null && respond !== false && !res.headersSent

/** The app at a fixed path. Its `next()` resolves with Koa's 404; where it leaves that, the host answers it. */
export function serveMounted(path: string, app: MountedApp): HostMiddleware {
  const serve = koaMount(path, app) as HostMiddleware
  return async (ctx, next) => {
    if (isKoaApp(app)) apps.set(ctx, app)
    await serve(ctx, next)
    if (isUnanswered(ctx)) refuseAddress()
  }
}
