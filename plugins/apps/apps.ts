// The apps of one instance of the plugin: their resources, their pages as they are served, and the newer ones of a reload.
import { createHash } from 'node:crypto'
import {
  type AppDefinition,
  type FilledOptions,
  type PluginHost,
  parseSize,
  type ResourceDefinition,
  type Services,
  StartError,
  type ToolDefinition,
} from '../../core/index.ts'
import { canonical } from './canonical.ts'
import { lastPage, type Page, type PageSettings, pageOf } from './page.ts'
import { PageFault } from './page-fault.ts'
import { resourceFor, uiFault, uriOf } from './wire.ts'

type Options = FilledOptions['apps']

export interface Apps {
  /** The same object for apps that say the same. */
  resourceOf(app: AppDefinition): ResourceDefinition
  /** Builds the pages of all tools that the config serves; tells what is wrong with them. */
  check(services: Services): Promise<void>
  /** After a reload: serves the pages that were built to check it, tells whoever watches one that changed, and says which. */
  renew(services: Services, options: Options): string[]
}

/** Of all that a client reads there. */
const digestOf = (app: AppDefinition, { html }: Page): string =>
  createHash('sha256').update(canonical(app)).update(html).digest('base64url')

const settingsOf = (directory: string, { minify, maxPageSize }: Options): PageSettings => ({
  directory,
  minify,
  maxBytes: parseSize(maxPageSize),
})

type WithApp = ToolDefinition & { app: AppDefinition }

const hasApp = (tool: ToolDefinition): tool is WithApp => tool.app !== undefined

/** Those that the config serves on the plugin's routes. */
const toolsWithApps = (host: PluginHost, services: Services): WithApp[] =>
  host.routes
    .flatMap(route => services.itemsOf(route))
    .flatMap(({ kind, definition }) => (kind === 'tools' && hasApp(definition) ? [definition] : []))

/** Each app once, by what it says, with the first of its tools. */
function appsOf(tools: readonly WithApp[]): Map<string, WithApp> {
  const found = new Map<string, WithApp>()
  for (const tool of tools) {
    const key = canonical(tool.app)
    if (!found.has(key)) found.set(key, tool)
  }
  return found
}

/** Makes a page; `mcp-host dev` watches what it is made of, also where it cannot be. */
async function build(app: AppDefinition, settings: PageSettings, host: Pick<PluginHost, 'reads'>): Promise<Page> {
  const noteAll = (files: readonly string[]) => files.forEach(host.reads)
  try {
    const page = await pageOf(app, settings)
    noteAll(page.files)
    return page
  } catch (error) {
    if (PageFault.is(error)) noteAll(error.files)
    throw error
  }
}

export function createApps(host: PluginHost, options: Options): Apps {
  const { directory, log } = host
  const resources = new Map<string, ResourceDefinition>()
  const pages = new Map<string, Promise<Page>>()
  /** What is served at each URI. */
  const digests = new Map<string, string>()
  let settings = settingsOf(directory, options)

  /** As it was built last: one that failed is tried again after a reload. */
  function served(app: AppDefinition, key = canonical(app)): Promise<Page> {
    const page = pages.get(key) ?? build(app, settings, host)
    pages.set(key, page)
    return page
  }

  async function checkApp(tool: WithApp) {
    const { app } = tool
    try {
      const page = await served(app)
      digests.set(uriOf(app), digestOf(app, page))
      log.debug({ app: app.name, bytes: page.bytes, files: page.files.length }, 'the page of an app')
    } catch (error) {
      if (!PageFault.is(error)) throw error
      const at = ['app', ...error.at]
      host.report(new StartError(`app "${app.name}": ${error.message}`, { of: tool, at, cause: error }))
    }
  }

  return {
    resourceOf(app) {
      const key = canonical(app)
      const resource = resources.get(key) ?? resourceFor(app, async () => (await served(app, key)).html)
      resources.set(key, resource)
      return resource
    },
    async check(services) {
      const tools = toolsWithApps(host, services)
      for (const tool of new Set(tools)) {
        const fault = uiFault(tool)
        if (fault !== undefined) host.report(new StartError(fault, { of: tool, at: ['_meta'] }))
      }
      await Promise.all([...appsOf(tools).values()].map(checkApp))
    },
    renew(services, next) {
      settings = settingsOf(directory, next)
      pages.clear()
      const changed: string[] = []
      for (const [key, { app }] of appsOf(toolsWithApps(host, services))) {
        const page = lastPage(app, settings)
        if (!page) continue
        pages.set(key, Promise.resolve(page))
        const [uri, digest] = [uriOf(app), digestOf(app, page)]
        const before = digests.get(uri)
        digests.set(uri, digest)
        if (before === undefined || before === digest) continue
        changed.push(`app "${app.name}"`)
        services.runtime.resourceUpdated(uri)
      }
      return changed
    },
  }
}
