// What attacks on the bridge are made with: requests by hand, a store that tells what it was given, hosts that share one.

import { definePlugin } from '../../../../core/internal.ts'
import type { ConfiguredPlugin } from '../../../../core/plugin.ts'
import type { GrantStore } from '../../../../plugins/families/grant-store/index.ts'
import { createMemoryGrantStore } from '../../../../plugins/families/grant-store/index.ts'
import { type BridgeSettings, type StartedBridge, startBridge } from '../../../support/bridge.ts'

export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Where it sends the browser. */
  readonly location: URL | undefined
}

/** One request, no redirect followed. */
export async function send(url: string | URL, init: RequestInit = {}): Promise<Got> {
  const response = await fetch(url, { redirect: 'manual', ...init })
  const location = response.headers.get('location')
  return {
    status: response.status,
    headers: response.headers,
    text: await response.text(),
    location: location === null ? undefined : new URL(location, url),
  }
}

export const post = (url: string | URL, form: Record<string, string>, headers: Record<string, string> = {}) =>
  send(url, { method: 'POST', body: new URLSearchParams(form), headers })

/** What an answer could give away: a code at a client, a token, or a page to allow on. */
export const isRefused = ({ status, location, text }: Got): boolean =>
  status < 500 &&
  !/[?&#](?:code|access_token|id_token)=/.test(location?.href ?? '') &&
  !/"access_token"|name="decision"/.test(text)

/** What a client was sent back with; none of it is a code. */
export const errorIn = (got: Got): string | null =>
  /[?&#]error=([^&]+)/.exec(got.location?.href ?? '')?.[1] ?? /"error":"([^"]+)"/.exec(got.text)?.[1] ?? null

export interface WatchedStore {
  readonly store: GrantStore
  readonly plugin: ConfiguredPlugin
  /** Every key and text that it was ever given. */
  readonly given: Array<{ readonly key: string; readonly text: string }>
  /** What is there now, as far as it was set and not deleted. */
  readonly kept: Map<string, string>
}

/** `most`: bytes, and `now`, as for the memory store. */
export function watchedStore(most?: { pending: number; granted: number }, now?: () => number): WatchedStore {
  const inner = createMemoryGrantStore(most, now)
  const given: Array<{ key: string; text: string }> = []
  const kept = new Map<string, string>()
  const note = (key: string, text: string) => {
    given.push({ key, text })
    kept.set(key, text)
  }
  const store: GrantStore = {
    ...inner,
    shared: true,
    async set(key, text, ttl) {
      note(key, text)
      await inner.set(key, text, ttl)
    },
    async add(key, text, ttl) {
      const added = await inner.add(key, text, ttl)
      if (added) note(key, text)
      return added
    },
    async replace(key, from, to, ttl) {
      const replaced = await inner.replace(key, from, to, ttl)
      if (replaced) note(key, to)
      return replaced
    },
    async take(key) {
      kept.delete(key)
      return inner.take(key)
    },
    async delete(...keys) {
      for (const key of keys) kept.delete(key)
      await inner.delete(...keys)
    },
    async join(set, member, ttl, mostMembers) {
      given.push({ key: set, text: member })
      return inner.join(set, member, ttl, mostMembers)
    },
  }
  const plugin = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => host.provide('grantStore', store),
  })()
  return { store, plugin, given, kept }
}

/** Two hosts with the same secrets, store and provider. */
export async function startTwo(
  settings: BridgeSettings = {},
  watched: WatchedStore = watchedStore(),
): Promise<{
  readonly one: StartedBridge
  readonly other: StartedBridge
  readonly watched: WatchedStore
}> {
  const plugins = { ...settings.plugins, 'grant-store-test': watched.plugin }
  const one = await startBridge({ ...settings, plugins })
  const { port } = new URL(one.url)
  // Nodes of one host have one public address: cookies and tokens of one are of the other.
  const http = { ...settings.config?.http, port: 0, publicUrl: `http://127.0.0.1:${port}` }
  const other = await startBridge({ ...settings, idp: one.idp, plugins, config: { ...settings.config, http } })
  return { one, other: { ...other, issuer: one.issuer, resource: one.resource }, watched }
}

/** A browser's cookies as a header for an address. */
export function cookiesFor(
  browser: { cookies: Map<string, { path: string; pair: string }> },
  url: string | URL,
): string {
  const { pathname } = new URL(url)
  return [...browser.cookies.values()]
    .filter(({ path }) => pathname.startsWith(path))
    .map(({ pair }) => pair)
    .join('; ')
}
