// The plugin `search`: lists contain pinned tools, `find_tools` and `call_tool` only.
import { matchesGlob } from '../../core/auth.ts'
import { closed, definePlugin, didYouMean, type InternalHost, list, type Services, words } from '../../core/internal.ts'
import { type OptionsOf, StartError } from '../../core/plugin.ts'
import { CALL_TOOL, createSearches, createSearchTools, FIND_TOOLS, isOwn, redirectCall } from './search-tools.ts'

const isGlob = (text: string) => text.includes('*')

function compilePinned(pinned: readonly string[]): (name: string) => boolean {
  const names = new Set(pinned.filter(text => !isGlob(text)))
  const globs = pinned.filter(isGlob)
  return name => names.has(name) || globs.some(glob => matchesGlob(glob, name))
}

/** Reports a name without a tool. For a glob it only warns, because tools can be added at run time. */
function checkPinned(pinned: readonly string[], host: InternalHost, services: Services): void {
  const items = host.routes.flatMap(route => services.reachableItemsOf(route))
  const names = [...new Set(items.flatMap(({ kind, key }) => (kind === 'tools' ? key : [])))]
  for (const [index, text] of pinned.entries()) {
    const at = [...host.config.at, 'pinned', index]
    if (!isGlob(text) && !names.includes(text) && services.hasStaticItems()) {
      host.report(new StartError('MH2920', `there is no tool "${text}" to pin; ${didYouMean(text, names)}`, { at }))
    } else if (isGlob(text) && services.hasStaticItems() && !names.some(name => matchesGlob(text, name))) {
      host.report(new StartError('MH2920', `"${text}" pins no tool that is defined at startup`, { at }), 'warning')
    }
  }
}

const OPTIONS = closed(
  {
    pinned: list(
      words('A name, or a glob. * matches any characters.'),
      'Names or globs of tools that stay in tools/list.',
      { default: [], examples: [['get_order', 'stock_*']] },
    ),
  },
  { title: 'SearchSettings', description: 'Lists find_tools and call_tool in place of all tools.' },
)

export interface ToolSearchOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledToolSearchOptions extends OptionsOf<typeof OPTIONS, true> {}

export const toolSearch = definePlugin<ToolSearchOptions, FilledToolSearchOptions>({
  options: OPTIONS,
  provides: ['search'],
  routeKey: 'search',
  setup(host, options) {
    let isPinned = compilePinned(options.pinned)
    const isListed = (name: string) => isOwn(name) || isPinned(name)
    const tools = createSearchTools(createSearches(host.metrics))
    host.toolset(tools)
    host.unlist(name => !isListed(name))
    host.redirect(redirectCall)
    host.onReady(() => checkPinned(options.pinned, host, host.services))
    host.explain((item, route) => {
      if (item) return item.kind === 'tools' ? [isListed(item.key) ? LISTED : FOUND] : []
      const names = host.services.itemsOf(route).flatMap(({ kind, key }) => (kind === 'tools' ? key : []))
      const listed = names.filter(isListed)
      const shown = [...listed.slice(0, MAX_NAMES), ...(listed.length > MAX_NAMES ? ['...'] : [])].join(', ')
      return [`tools/list has ${listed.length} of ${names.length} tools (${shown}); the others are found`]
    })
    host.onReload<FilledToolSearchOptions>(changed => {
      const next = compilePinned(changed.pinned)
      return () => {
        isPinned = next
      }
    })
  },
})

const MAX_NAMES = 40
const LISTED = 'in tools/list'
const FOUND = `not in tools/list: ${FIND_TOOLS} finds it, ${CALL_TOOL} and its own name call it`
