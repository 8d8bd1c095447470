// The built-in plugins by config name. To remove a plugin, delete its line.

import { accessLog } from './access-log/index.ts'
import { type AppDefinition, apps } from './apps/index.ts'
import { audit } from './audit/index.ts'
import { authBridge, devAuthServer, type UpstreamContext } from './auth-bridge/index.ts'
import { authIntrospection } from './auth-introspection/index.ts'
import { authJwt } from './auth-jwt/index.ts'
import {
  changeBusRedis,
  clusterRedis,
  eventStoreRedis,
  grantStoreRedis,
  sessionStoreRedis,
  taskStoreRedis,
} from './cluster-redis/index.ts'
import { type ConsoleProgram, console } from './console/index.ts'
import { cors } from './cors/index.ts'
import { eventLoop } from './event-loop/index.ts'
import type { GrantSlots } from './families/grant-store/index.ts'
import type { RedisSections } from './families/redis/section.ts'
import { health } from './health/index.ts'
import { isolate } from './isolate/index.ts'
import { metrics } from './metrics/index.ts'
import { openapi } from './openapi/index.ts'
import { rateLimit } from './rate-limit/index.ts'
import { resourceMetadata } from './resource-metadata/index.ts'
import { skills } from './skills/index.ts'
import { storePostgres } from './store-postgres/index.ts'
import { storeSqlite } from './store-sqlite/index.ts'
import { type TaskSetting, type TaskSlots, tasks } from './tasks/index.ts'
import { toolPolicy } from './tool-policy/index.ts'
import { type ToolSearchOptions, toolSearch } from './tool-search/index.ts'
import { tracing } from './tracing/index.ts'
import { transportSse } from './transport-sse/index.ts'
import { transportStdio } from './transport-stdio/index.ts'
import { transportStreamable } from './transport-streamable/index.ts'
import { upstream } from './upstream/index.ts'

export const builtInPlugins = {
  'transport-streamable': transportStreamable,
  'transport-sse': transportSse,
  'transport-stdio': transportStdio,
  'resource-metadata': resourceMetadata,
  cors,
  'tool-policy': toolPolicy,
  'tool-search': toolSearch,
  'auth-jwt': authJwt,
  'auth-introspection': authIntrospection,
  'auth-bridge': authBridge,
  'rate-limit': rateLimit,
  isolate,
  'event-loop': eventLoop,
  upstream,
  openapi,
  skills,
  health,
  'access-log': accessLog,
  metrics,
  console,
  audit,
  tracing,
  apps,
  tasks,
  'store-sqlite': storeSqlite,
  'store-postgres': storePostgres,
  'cluster-redis': clusterRedis,
  'session-store-redis': sessionStoreRedis,
  'change-bus-redis': changeBusRedis,
  'event-store-redis': eventStoreRedis,
  'grant-store-redis': grantStoreRedis,
  'task-store-redis': taskStoreRedis,
  'dev-auth-server': devAuthServer,
}

type OptionsByName = {
  [Name in keyof typeof builtInPlugins]: NonNullable<Parameters<(typeof builtInPlugins)[Name]>[0]>
}

declare module '../core/config/define-config.ts' {
  interface BuiltInOptions extends OptionsByName {}
  interface BuiltInStores {
    redis: OptionsByName['cluster-redis']
    sqlite: OptionsByName['store-sqlite']
    postgres: OptionsByName['store-postgres']
  }
  interface BuiltInSections extends Partial<RedisSections> {}
  interface BuiltInRouteKeys {
    /** `tools/list` shows `find_tools` and `call_tool` in place of tools. */
    search?: ToolSearchOptions
  }
}

declare module '../core/mcp/definitions/define.ts' {
  interface BuiltInToolKeys {
    /** Runs calls as tasks. */
    task?: TaskSetting
    /** The app that shows the results. */
    app?: AppDefinition
  }
  interface BuiltInContext extends UpstreamContext {}
}

declare module '../core/slots.ts' {
  interface BuiltInSlots extends GrantSlots, TaskSlots {}
}

declare module '../core/operator.ts' {
  interface OperatorProgram extends ConsoleProgram {}
}

/** Enabled by default. */
export const defaultPlugins = ['isolate'] as const
