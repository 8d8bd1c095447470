// A form for a JSON Schema: text, number, boolean, choice, object and array. Other schemas get a field for JSON.
import { useId, useState } from 'preact/hooks'
import {
  choicesOf,
  controlOf,
  initialValue,
  isObject,
  type JsonObject,
  propertiesOf,
  requiredOf,
  resolve,
} from '../data/schema.ts'
import { visibleText } from '../data/text.ts'
import { Text } from './text.tsx'

interface FieldProps {
  readonly name: string
  readonly schema: unknown
  /** The schema with the definitions. */
  readonly root: JsonObject
  readonly value: unknown
  readonly isRequired: boolean
  readonly onChange: (value: unknown) => void
}

const text = (value: unknown) => (typeof value === 'string' ? value : undefined)

const without = (value: JsonObject, name: string): JsonObject =>
  Object.fromEntries(Object.entries(value).filter(([other]) => other !== name))

const INPUT_TYPES: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date' }

interface JsonFieldProps {
  readonly id: string
  readonly value: unknown
  readonly isRequired: boolean
  readonly describedBy: string | undefined
  readonly onChange: (value: unknown) => void
}

/** Invalid JSON blocks the submission of the form. */
export function JsonField({ id, value, isRequired, describedBy, onChange }: JsonFieldProps) {
  const [draft, setDraft] = useState(value === undefined ? '' : JSON.stringify(value, undefined, 2))
  return (
    <textarea
      id={id}
      required={isRequired}
      spellcheck={false}
      aria-describedby={describedBy}
      value={draft}
      onInput={({ currentTarget: field }) => {
        setDraft(field.value)
        try {
          onChange(field.value.trim() === '' ? undefined : JSON.parse(field.value))
          field.setCustomValidity('')
        } catch {
          field.setCustomValidity('Enter valid JSON.')
        }
      }}
    />
  )
}

function Single({ schema, id, value, isRequired, describedBy, onChange }: SingleProps) {
  const choices = choicesOf(schema)
  const common = { id, required: isRequired, 'aria-describedby': describedBy }
  if (choices) {
    const index = choices.findIndex(choice => JSON.stringify(choice.value) === JSON.stringify(value))
    return (
      <select
        {...common}
        value={index < 0 ? '' : String(index)}
        onChange={({ currentTarget: field }) => onChange(choices[Number(field.value || -1)]?.value)}
      >
        <option value="">{isRequired ? 'Choose' : 'Not set'}</option>
        {choices.map(({ label }, at) => (
          <option key={label} value={String(at)}>
            {visibleText(label)}
          </option>
        ))}
      </select>
    )
  }
  const control = controlOf(schema)
  if (control === 'number') {
    return (
      <input
        {...common}
        type="number"
        step={schema['type'] === 'integer' ? 1 : 'any'}
        value={typeof value === 'number' ? value : ''}
        onInput={({ currentTarget: field }) => onChange(field.value === '' ? undefined : field.valueAsNumber)}
      />
    )
  }
  if (control === 'json') {
    return <JsonField id={id} value={value} isRequired={isRequired} describedBy={describedBy} onChange={onChange} />
  }
  return (
    <input
      {...common}
      type={INPUT_TYPES[text(schema['format']) ?? ''] ?? 'text'}
      // A required text can be empty.
      required={isRequired && Number(schema['minLength'] ?? 0) > 0}
      value={text(value) ?? ''}
      onInput={({ currentTarget: field }) => onChange(field.value === '' && !isRequired ? undefined : field.value)}
    />
  )
}

interface SingleProps extends JsonFieldProps {
  readonly schema: JsonObject
}

function ArrayField({ schema, root, value, onChange }: FieldProps & { readonly schema: JsonObject }) {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return (
    <div class="stack">
      {list.map((item, index) => (
        <div key={index} class="stack">
          <Field
            name={`Item ${index + 1}`}
            schema={schema['items']}
            root={root}
            value={item}
            isRequired
            onChange={changed => onChange(list.with(index, changed))}
          />
          <div>
            <button type="button" onClick={() => onChange(list.toSpliced(index, 1))}>
              Remove item {index + 1}
            </button>
          </div>
        </div>
      ))}
      <div>
        <button type="button" onClick={() => onChange([...list, initialValue(schema['items'], root) ?? ''])}>
          Add item
        </button>
      </div>
    </div>
  )
}

function Composite(props: FieldProps & { readonly schema: JsonObject }) {
  const { name, schema, root, value, isRequired, onChange } = props
  const title = text(schema['title']) ?? name
  const description = text(schema['description'])
  return (
    <fieldset>
      <legend>
        <Text value={title} most={80} />
        {isRequired && <span class="muted"> (required)</span>}
      </legend>
      {description !== undefined && (
        <p class="small muted">
          <Text value={description} most={500} />
        </p>
      )}
      {value === undefined ? (
        <button type="button" onClick={() => onChange(initialValue(schema, root))}>
          Add {visibleText(title, 40)}
        </button>
      ) : (
        <div class="stack">
          {controlOf(schema) === 'array' ? <ArrayField {...props} /> : <ObjectFields {...props} />}
          {!isRequired && (
            <div>
              <button type="button" onClick={() => onChange(undefined)}>
                Remove {visibleText(title, 40)}
              </button>
            </div>
          )}
        </div>
      )}
    </fieldset>
  )
}

function Field(props: FieldProps) {
  const { name, root, value, isRequired, onChange } = props
  const id = useId()
  const schema = resolve(props.schema, root)
  const control = controlOf(schema)
  if (control === 'object' || control === 'array') return <Composite {...props} schema={schema} />
  const title = text(schema['title']) ?? name
  const description = text(schema['description'])
  const describedBy = description === undefined ? undefined : `${id}-description`
  const help = description !== undefined && (
    <p id={describedBy} class="small muted wrap">
      <Text value={description} most={500} />
    </p>
  )
  if (control === 'boolean') {
    return (
      <div class="field">
        <label class="inline" for={id}>
          <input
            id={id}
            type="checkbox"
            checked={value === true}
            aria-describedby={describedBy}
            onChange={({ currentTarget: field }) => onChange(field.checked)}
          />
          <span>
            <Text value={title} most={80} />
          </span>
        </label>
        {help}
      </div>
    )
  }
  return (
    <div class="field">
      <label for={id}>
        <Text value={title} most={80} />
        {isRequired && <span class="muted"> (required)</span>}
      </label>
      <Single {...{ schema, id, value, isRequired, describedBy, onChange }} />
      {help}
    </div>
  )
}

const ObjectFields = ({
  schema,
  root,
  value,
  onChange,
}: Omit<FieldProps, 'name' | 'isRequired'> & { readonly schema: JsonObject }) => {
  const current = isObject(value) ? value : {}
  const required = requiredOf(schema)
  return (
    <>
      {propertiesOf(schema).map(([name, inner]) => (
        <Field
          key={name}
          name={name}
          schema={inner}
          root={root}
          value={current[name]}
          isRequired={required.has(name)}
          onChange={changed =>
            onChange(changed === undefined ? without(current, name) : { ...current, [name]: changed })
          }
        />
      ))}
    </>
  )
}

interface SchemaFormProps {
  readonly schema: JsonObject
  readonly value: JsonObject
  readonly onChange: (value: JsonObject) => void
}

/** The fields of an object schema. */
export const SchemaForm = ({ schema, value, onChange }: SchemaFormProps) => {
  const resolved = resolve(schema, schema)
  if (propertiesOf(resolved).length === 0) return <p class="muted">No arguments.</p>
  return (
    <div class="stack">
      <ObjectFields
        schema={resolved}
        root={schema}
        value={value}
        onChange={changed => onChange(isObject(changed) ? changed : {})}
      />
    </div>
  )
}
