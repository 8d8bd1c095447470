// The option `pinned`: names and globs of the tools that stay in lists.
import { matchesGlob } from '../../core/auth.ts'
import { didYouMean, type PluginHost, type Services, StartError } from '../../core/index.ts'

const isGlob = (text: string) => text.includes('*')

/** Whether a tool of this name is pinned. */
export function compilePinned(pinned: readonly string[]): (name: string) => boolean {
  const names = new Set(pinned.filter(text => !isGlob(text)))
  const globs = pinned.filter(isGlob)
  return name => names.has(name) || globs.some(glob => matchesGlob(glob, name))
}

/** Tells of a name that no tool of the routes has; of a glob it warns, for tools may be added while the host runs. */
export function checkPinned(pinned: readonly string[], host: PluginHost, services: Services): void {
  const items = host.routes.flatMap(route => services.reachableItemsOf(route))
  const names = [...new Set(items.flatMap(({ kind, key }) => (kind === 'tools' ? key : [])))]
  for (const [index, text] of pinned.entries()) {
    const at = [...host.at, 'pinned', index]
    if (!isGlob(text) && !names.includes(text)) {
      host.report(new StartError(`there is no tool "${text}" to pin; ${didYouMean(text, names)}`, { at }))
    } else if (isGlob(text) && !names.some(name => matchesGlob(text, name))) {
      host.report(new StartError(`"${text}" pins no tool that is defined at start`, { at }), 'warning')
    }
  }
}
