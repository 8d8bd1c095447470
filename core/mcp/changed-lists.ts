// Which lists differ between two views, as their callers see them: what a reload tells clients of.
import type { CatalogItem, ItemKind } from './catalog.ts'
import type { View } from './view.ts'

/** Every list that clients can be told of. */
export const LIST_KINDS = ['tools', 'resources', 'prompts'] as const satisfies readonly ItemKind[]

type Lists = Readonly<Record<ItemKind, string>>

/** What its callers see, and the same with what is hidden from them. Many callers share a view. */
const known = new WeakMap<View, { readonly shown: Lists; readonly all: Lists }>()

function textsOf(view: View, textOf: (item: CatalogItem) => unknown): Lists {
  const text = (items: Iterable<CatalogItem>) => JSON.stringify([...items].map(textOf).filter(Boolean))
  return {
    tools: text(view.tools.values()),
    resources:
      text([...view.resources.values(), ...view.templates]) +
      JSON.stringify(view.listing.map(({ key, definition }) => [key, `${definition.list}`])),
    prompts: text(view.prompts.values()),
  }
}

function listsOf(view: View) {
  const found = known.get(view)
  if (found) return found
  const lists = {
    shown: textsOf(view, item => view.isListed(item) && view.wireOf(item)),
    all: textsOf(view, item => [view.isListed(item), view.wireOf(item)]),
  }
  known.set(view, lists)
  return lists
}

/** The lists that a caller would see change; `hidden`: or one to whom more is shown. */
export function changedLists(before: View, after: View, hidden = false): ItemKind[] {
  if (before === after) return []
  const [one, other] = [listsOf(before), listsOf(after)].map(({ shown, all }) => (hidden ? all : shown))
  return LIST_KINDS.filter(kind => one?.[kind] !== other?.[kind])
}
