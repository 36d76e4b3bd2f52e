const api = (path, options = {}) =>
  fetch(path, { ...options, headers: { "X-Requested-With": "single-page" } });

const element = (id) => document.getElementById(id);

const response = await api("/api/me");
if (response.ok) {
  const { name } = await response.json();
  element("greeting").textContent = `Hello ${name}.`;
  element("sign-out").hidden = false;
} else {
  element("greeting").textContent = "You are not signed in.";
  element("sign-in").hidden = false;
}

element("sign-out").addEventListener("click", async () => {
  const { location: next } = await (await api("/api/sign-out", { method: "POST" })).json();
  location.assign(next);
});
