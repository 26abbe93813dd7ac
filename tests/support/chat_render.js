// Render conversations with Hugging Face's Jinja (npm @huggingface/jinja): for each line of standard
// input, {"template", "messages", "enable_thinking"}, print the text as a line of JSON.
//
// In that library, strip, lstrip and rstrip ignore their argument, unlike in Jinja itself. All of
// these templates strip newlines, so while they are rendered, that is what its trim functions do.
const { Template } = require('@huggingface/jinja');
const left = (s) => s.replace(/^\n+/, ''), right = (s) => s.replace(/\n+$/, '');
const newlines = {
    trimStart() { return left(this); },
    trimEnd() { return right(this); },
    trim() { return left(right(this)); },
};
const templates = new Map();
const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
for (const { template } of lines)
    if (!templates.has(template))
        templates.set(template, new Template(template));
Object.assign(String.prototype, newlines);
const texts = lines.map(({ template, ...values }) =>
    templates.get(template).render({
        add_generation_prompt: true, bos_token: '<\uff5cbegin\u2581of\u2581sentence\uff5c>', ...values }));
process.stdout.write(texts.map((text) => JSON.stringify(text) + '\n').join(''));
