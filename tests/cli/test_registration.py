"""identity registration."""


def test_it_is_on_from_the_first_start_in_development_and_switched_off_and_on(on_data, stored):
    assert stored.organizations.find_by_domain("identity.localhost").registration
    for option, word, state in (("--off", "may not", False), ("--on", "may", True)):
        ran = on_data("registration", "--organization", "identity.localhost", option)
        assert ran.status == 0
        assert ran.out == f"People {word} register with Identity (identity.localhost).\n"
        assert stored.organizations.find_by_domain("identity.localhost").registration is state


def test_an_id_will_do(on_data, stored):
    organization = stored.organizations.find_by_domain("identity.localhost")
    assert on_data("registration", "--organization", organization.id, "--off").status == 0
    assert not stored.organizations.find(organization.id).registration


def test_an_unknown_organization(on_data):
    ran = on_data("registration", "--organization", "nowhere.example", "--on")
    assert (ran.status, ran.out) == (1, "")
    assert "There is no organization nowhere.example." in ran.err


def test_on_or_off_has_to_be_said(on_data):
    assert on_data("registration", "--organization", "identity.localhost").status == 2
