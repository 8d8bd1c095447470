// The resources and pages of the apps of one plugin instance.

import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { defineResource, type Meta, type ResourceDefinition, type ToolDefinition } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { isObject, parseSize, StartError } from '../../core/plugin.ts'
import type { AppDefinition } from './define-app.ts'
import type { FilledAppsOptions } from './options.ts'
import { canonical, lastPage, type Page, PageError, type PageSettings, pageOf } from './page.ts'

export const MIME_TYPE = 'text/html;profile=mcp-app'

/** The URI is stable across reloads, because clients keep it in conversations. */
const uriOf = ({ name }: AppDefinition): string => `ui://${name}/app.html`

/** Adds the page to the author's `_meta`. Clients from before 2026 read the flat key. */
export function toolMeta({ app, _meta }: ToolDefinition): Meta {
  if (!app) return {}
  const own = _meta?.['ui']
  const resourceUri = uriOf(app)
  return { ui: { ...(isObject(own) && own), resourceUri }, 'ui/resourceUri': resourceUri }
}

function uiProblem({ _meta }: ToolDefinition): string | undefined {
  const ui = _meta?.['ui']
  if (ui === undefined) return undefined
  if (!isObject(ui)) return '`_meta.ui` must be an object, such as { visibility: ["app"] }'
  const { visibility } = ui
  if (visibility === undefined) return undefined
  const isValid = Array.isArray(visibility) && visibility.length > 0 && visibility.every(one => AUDIENCES.has(one))
  return isValid ? undefined : '`_meta.ui.visibility` must be a list with "model", "app" or both'
}

const AUDIENCES: ReadonlySet<unknown> = new Set(['model', 'app'])

/** Returns `_meta` of the resource and its contents; undefined if empty. */
function pageMeta({ csp, permissions, domain, prefersBorder }: AppDefinition): Meta | undefined {
  const ui = Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined)
  return ui.length === 0 ? undefined : { ui: Object.fromEntries(ui) }
}

function resourceFor(app: AppDefinition, read: () => Promise<string>): ResourceDefinition {
  const { name, title, description, icons } = app
  const _meta = pageMeta(app)
  const meta = _meta && { _meta }
  return defineResource({
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(icons && { icons }),
    uri: uriOf(app),
    mimeType: MIME_TYPE,
    ...meta,
    handler: async () => ({ mimeType: MIME_TYPE, text: await read(), ...meta }),
  })
}

interface Apps {
  resourceOf(app: AppDefinition): ResourceDefinition
  digestOf(app: AppDefinition): string | undefined
  check(): Promise<void>
  /** Serves the pages of a reload and notifies subscribers. Returns the URIs of changed pages. */
  renew(options: FilledAppsOptions): string[]
}

const hashOf = (html: string) => `sha256-${createHash('sha256').update(html).digest('base64url')}`

const digestOf = (app: AppDefinition, { html }: Page): string =>
  createHash('sha256').update(canonical(app)).update(html).digest('base64url')

function note(digests: Map<string, Set<string>>, app: AppDefinition, page: Page): void {
  const known = digests.get(uriOf(app)) ?? new Set()
  digests.set(uriOf(app), known.add(digestOf(app, page)))
}

const differs = (before: ReadonlySet<string> | undefined, now: ReadonlySet<string>): boolean =>
  before !== undefined && (before.size !== now.size || [...now].some(digest => !before.has(digest)))

const settingsOf = (directory: string, { minify, maxPageSize }: FilledAppsOptions): PageSettings => ({
  directory,
  minify,
  maxBytes: parseSize(maxPageSize),
})

type WithApp = ToolDefinition & { app: AppDefinition }

const hasApp = (tool: ToolDefinition): tool is WithApp => tool.app !== undefined

const toolsOn = (host: InternalHost): Set<ToolDefinition> =>
  new Set(
    host.routes
      .flatMap(route => host.services.reachableItemsOf(route))
      .flatMap(({ kind, definition }) => (kind === 'tools' ? [definition] : [])),
  )

function appsOf(tools: Iterable<ToolDefinition>): Map<string, WithApp> {
  const found = new Map<string, WithApp>()
  for (const tool of tools) {
    if (!hasApp(tool)) continue
    const key = canonical(tool.app)
    if (!found.has(key)) found.set(key, tool)
  }
  return found
}

/** Maximum resources and pages in the cache: `configureSession` can add another app for each session. */
const MAX_KEPT = 1_000

function keep<Value extends object>(kept: LRUCache<string, Value>, key: string, value: Value): Value {
  kept.set(key, value)
  return value
}

/** Builds a page. `mcp-host dev` watches its files, also after a fault. */
async function build(app: AppDefinition, settings: PageSettings, host: Pick<InternalHost, 'reads'>): Promise<Page> {
  const noteAll = (files: readonly string[]) => files.forEach(host.reads)
  try {
    const page = await pageOf(app, settings)
    noteAll(page.files)
    return page
  } catch (error) {
    if (PageError.is(error)) noteAll(error.files)
    throw error
  }
}

export function createApps(host: InternalHost, options: FilledAppsOptions): Apps {
  const { directory } = host.config
  const resources = new LRUCache<string, ResourceDefinition>({ max: MAX_KEPT })
  const pages = new LRUCache<string, Promise<Page>>({ max: MAX_KEPT })
  /** Digests by URI: different routes can have different apps with one URI. */
  const digests = new Map<string, Set<string>>()
  const hashes = new Map<string, string>()
  let settings = settingsOf(directory, options)

  /** Returns the last page. A failed page is built again after a reload. */
  const served = (app: AppDefinition, key = canonical(app)): Promise<Page> =>
    keep(pages, key, pages.get(key) ?? build(app, settings, host))

  async function checkApp(tool: WithApp) {
    const { app } = tool
    try {
      const page = await served(app)
      note(digests, app, page)
      hashes.set(canonical(app), hashOf(page.html))
      host.log.debug({ app: app.name, bytes: page.bytes, files: page.files.length }, 'the page of an app')
    } catch (error) {
      if (!PageError.is(error)) throw error
      const at = ['app', ...error.at]
      host.report(new StartError('MH2901', `app "${app.name}": ${error.message}`, { of: tool, at, cause: error }))
    }
  }

  return {
    resourceOf(app) {
      const key = canonical(app)
      return keep(resources, key, resources.get(key) ?? resourceFor(app, async () => (await served(app, key)).html))
    },
    digestOf: app => hashes.get(canonical(app)),
    async check() {
      const tools = toolsOn(host)
      for (const tool of tools) {
        const problem = uiProblem(tool)
        if (problem !== undefined) host.report(new StartError('MH2902', problem, { of: tool, at: ['_meta'] }))
      }
      await Promise.all([...appsOf(tools).values()].map(checkApp))
    },
    renew(next) {
      settings = settingsOf(directory, next)
      pages.clear()
      const before = new Map(digests)
      digests.clear()
      hashes.clear()
      for (const [key, { app }] of appsOf(toolsOn(host))) {
        const page = lastPage(app, settings)
        if (!page) continue
        keep(pages, key, Promise.resolve(page))
        note(digests, app, page)
        hashes.set(key, hashOf(page.html))
      }
      const changed = [...digests].filter(([uri, now]) => differs(before.get(uri), now))
      for (const [uri] of changed) host.runtime.resourceUpdated(uri)
      return changed.map(([uri]) => uri)
    },
  }
}
