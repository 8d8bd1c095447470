// The built-in plugins, by the name that a config uses. A plugin may be deleted with its line here.

import { type AuthIntrospectionOptions, authIntrospection } from './auth-introspection/index.ts'
import { type AuthJwtOptions, authJwt } from './auth-jwt/index.ts'
import { type ChangeBusRedisOptions, changeBusRedis } from './change-bus-redis/index.ts'
import { type ClusterRedisOptions, clusterRedis } from './cluster-redis/index.ts'
import { type CorsOptions, cors } from './cors/index.ts'
import { type DevAuthServerOptions, devAuthServer } from './dev-auth-server/index.ts'
import { type EventStoreRedisOptions, eventStoreRedis } from './event-store-redis/index.ts'
import type { RedisSections } from './families/redis/index.ts'
import { type HealthOptions, health } from './health/index.ts'
import { type ResourceMetadataOptions, resourceMetadata } from './resource-metadata/index.ts'
import { type SessionStoreRedisOptions, sessionStoreRedis } from './session-store-redis/index.ts'
import { type ToolPolicyOptions, toolPolicy } from './tool-policy/index.ts'
import { type TransportSseOptions, transportSse } from './transport-sse/index.ts'
import { type TransportStreamableOptions, transportStreamable } from './transport-streamable/index.ts'

export const builtInPlugins = {
  'transport-streamable': transportStreamable,
  'transport-sse': transportSse,
  'resource-metadata': resourceMetadata,
  cors,
  'tool-policy': toolPolicy,
  'auth-jwt': authJwt,
  'auth-introspection': authIntrospection,
  health,
  'cluster-redis': clusterRedis,
  'session-store-redis': sessionStoreRedis,
  'change-bus-redis': changeBusRedis,
  'event-store-redis': eventStoreRedis,
  'dev-auth-server': devAuthServer,
}

/** The top-level keys of the config that they share, for `defineConfig`. */
export interface BuiltInSections extends RedisSections {}

/** The same names with their options, for `defineConfig`. */
export interface BuiltInOptions {
  'transport-streamable': TransportStreamableOptions
  'transport-sse': TransportSseOptions
  'resource-metadata': ResourceMetadataOptions
  cors: CorsOptions
  'tool-policy': ToolPolicyOptions
  'auth-jwt': AuthJwtOptions
  'auth-introspection': AuthIntrospectionOptions
  health: HealthOptions
  'cluster-redis': ClusterRedisOptions
  'session-store-redis': SessionStoreRedisOptions
  'change-bus-redis': ChangeBusRedisOptions
  'event-store-redis': EventStoreRedisOptions
  'dev-auth-server': DevAuthServerOptions
}
