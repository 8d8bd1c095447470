// The apps of one instance of the plugin: their resources, their pages as they are served, and the newer ones of a reload.
import { createHash } from 'node:crypto'
import {
  type AppDefinition,
  type FilledOptions,
  noteFileRead,
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

export function createApps(host: PluginHost, options: Options): Apps {
  const { directory, log } = host
  const resources = new Map<string, ResourceDefinition>()
  const pages = new Map<string, Promise<Page>>()
  /** What is served at each URI. */
  const digests = new Map<string, string>()
  let settings = settingsOf(directory, options)

  async function build(app: AppDefinition): Promise<Page> {
    const noteAll = (files: readonly string[]) => files.forEach(noteFileRead)
    try {
      const page = await pageOf(app, settings)
      noteAll(page.files)
      return page
    } catch (error) {
      if (PageFault.is(error)) noteAll(error.files)
      throw error
    }
  }

  /** As it was built last: one that failed is tried again after a reload. */
  function served(app: AppDefinition): Promise<Page> {
    const key = canonical(app)
    const page = pages.get(key) ?? build(app)
    pages.set(key, page)
    return page
  }

  /** Of the tools that the config serves on the plugin's routes; each app with the first of its tools. */
  function toolsWithApps(services: Services): Map<string, ToolDefinition & { app: AppDefinition }> {
    const found = new Map<string, ToolDefinition & { app: AppDefinition }>()
    for (const item of host.routes.flatMap(route => services.itemsOf(route))) {
      if (item.kind !== 'tools' || !hasApp(item.definition)) continue
      const key = canonical(item.definition.app)
      if (!found.has(key)) found.set(key, item.definition)
    }
    return found
  }

  async function checkApp(tool: ToolDefinition & { app: AppDefinition }) {
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
      const resource = resources.get(key) ?? resourceFor(app, async () => (await served(app)).html)
      resources.set(key, resource)
      return resource
    },
    async check(services) {
      for (const item of host.routes.flatMap(route => services.itemsOf(route))) {
        const fault = item.kind === 'tools' && hasApp(item.definition) ? uiFault(item.definition) : undefined
        if (fault !== undefined) host.report(new StartError(fault, { of: item.definition, at: ['_meta'] }))
      }
      await Promise.all([...toolsWithApps(services).values()].map(checkApp))
    },
    renew(services, next) {
      settings = settingsOf(directory, next)
      pages.clear()
      const changed: string[] = []
      for (const [key, { app }] of toolsWithApps(services)) {
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

const hasApp = (tool: ToolDefinition): tool is ToolDefinition & { app: AppDefinition } => tool.app !== undefined
