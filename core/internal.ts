// For built-in plugins only: what package.json does not export.
import type { InternalHost } from './internal-host.ts'
import { type DefinePlugin, definePlugin as definePublic } from './plugin-host.ts'

export { ReadError, readJson, readYaml } from './config/read-document.ts'
export { attempt } from './http/describe-thrown.ts'
export { addCount } from './http/get-or-create.ts'
export type { ResolvedHttp } from './http/guard.ts'
export { endOfString } from './http/json-body.ts'
export { KeyedLru } from './http/keyed-lru.ts'
export { lruLimit } from './http/lru-limit.ts'
export { explainListen } from './http/port.ts'
export type { InternalExamination, InternalHost, Services } from './internal-host.ts'
export { isConfiguredPlugin } from './kernel/define-plugin.ts'
export type { CrossOrigin, Timeline } from './kernel/endpoint.ts'
export { decryptText, encryptText } from './kernel/secrets.ts'
export { CallQueue } from './mcp/calls/call-queue.ts'
export { FairQueue, type Queued } from './mcp/calls/fair-queue.ts'
export type { BuiltInContext } from './mcp/definitions/define.ts'
export { didYouMean, nearest } from './mcp/nearest.ts'
export { compileSchema } from './mcp/schema/schema.ts'
export {
  choice,
  closed,
  count,
  duration,
  flag,
  list,
  mapOf,
  positiveDuration,
  size,
  text,
  words,
} from './mcp/schema/schema-parts.ts'
export type { KeptWarning, Operator } from './operator.ts'
export type { Slots } from './slots.ts'

export const definePlugin = definePublic as unknown as DefinePlugin<InternalHost>
