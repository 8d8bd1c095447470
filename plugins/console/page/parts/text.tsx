// Text that clients or upstream servers control.
import { type ComponentChildren, Fragment } from 'preact'
import { pieces } from '../data/text.ts'

interface Shown {
  readonly value: string
  readonly most?: number
  readonly lines?: boolean
}

export const Text = ({ value, most = 4_000, lines = false }: Shown) => (
  <bdi>
    {pieces(value, { most, lines }).map(({ text, isEscaped }, index) =>
      isEscaped ? (
        <span class="escaped" key={index}>
          {text}
        </span>
      ) : (
        text
      ),
    )}
  </bdi>
)

export const Code = ({ value, most = 200 }: Shown) => (
  <code>
    <Text value={value} most={most} />
  </code>
)

/** Shows a dash for an absent value. Strings are shown as untrusted text. */
export const Optional = ({ value, none = '–' }: { readonly value: ComponentChildren; readonly none?: string }) =>
  value === undefined || value === '' ? (
    <span class="muted">{none}</span>
  ) : typeof value === 'string' ? (
    <Text value={value} />
  ) : (
    value
  )

export type Fact = readonly [label: string, value: ComponentChildren]

export const Facts = ({ list }: { readonly list: readonly Fact[] }) => (
  <dl class="facts number">
    {list.map(([label, value]) => (
      <Fragment key={label}>
        <dt>{label}</dt>
        <dd>
          <Optional value={value} />
        </dd>
      </Fragment>
    ))}
  </dl>
)

/** Withheld items, each with the reason. */
export const WithheldItems = ({
  items,
}: {
  readonly items: ReadonlyArray<readonly [item: string, reason: string]>
}) => (
  <ul class="rows">
    {items.map(([item, reason]) => (
      <li key={item}>
        <span class="grow wrap">
          <Code value={item} /> <Text value={reason} />
        </span>
      </li>
    ))}
  </ul>
)
